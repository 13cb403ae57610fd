// SPDX-License-Identifier: Apache-2.0
// A command is one .cc with a `const Command`, one .md with its help, and one line in all_commands.cc.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap::cli {

class World;  // what a command may use: configuration, clusters, terminal (world.h)

// One flag; the table drives parsing, "did you mean", --help's checks and shell completion.
struct Flag {
  std::string_view name = {};        // "--gpus"
  std::string_view short_name = {};  // "-n" or ""
  std::string_view value = {};       // "GPUS": takes a value; "": a switch
  std::string_view summary = {};     // one line
  bool repeated = false;             // may be given several times; of any other flag the last one counts
};

// What other programs call a flag: for "did you mean".
struct FlagSynonym {
  std::string_view word;
  std::string_view flag;  // or a sentence that says what to do instead
};

// The words after the verb, taken apart (args.h does it).
class Args {
 public:
  bool Has(std::string_view flag) const;                      // by long name: "--gpus"
  std::string_view Get(std::string_view flag) const;          // last value, "" when not given
  std::string_view Typed(std::string_view flag) const;        // as the user wrote it: "-n"
  std::vector<std::string> All(std::string_view flag) const;  // every value, in order
  // The one of `names` that was given last, "" when none was: LastOf({"--requeue", "--no-requeue"}).
  std::string_view LastOf(std::initializer_list<std::string_view> names) const;
  // `absent` when not given; kUsage names the flag when it is no whole number in [min, max].
  Result<long long> GetInt(std::string_view flag, long long absent, long long min, long long max) const;
  const std::vector<std::string>& words() const {
    return words_;
  }  // positional words; after `--` as they are

  std::vector<std::pair<std::string, std::string>> flags_;  // long name, value; in the order given
  std::vector<std::string> typed_;                          // beside flags_: the names as they were typed
  std::vector<std::string> words_;
};

// Headings of `overcap --help`, in this order.
enum class CommandGroup { kJobs, kCode, kSetup };

// The same result with the flag named in its error: "--time: '5x' is no duration".
template <typename T>
Result<T> OfFlag(std::string_view flag, Result<T> result) {
  if (!result) result.error().message.insert(0, std::string(flag) + ": ");
  return result;
}

// Made of constants only (`constinit const Command kQuery = {...}`), so that starting the program costs
// nothing.
struct Command {
  std::string_view name = {};                      // "query"; "daemon status" for a command of a group
  std::span<const std::string_view> aliases = {};  // of a constexpr array: {"q"}
  std::string_view summary = {};                   // one line for `overcap --help`
  std::string_view usage = {};                     // "[-f] [--rank R] ID"
  std::span<const Flag> flags = {};  // of a constexpr array; beside the global ones (--json, --help, -c, ...)
  int min_words = 0;
  int max_words = -1;          // -1: any number
  bool takes_command = false;  // the first word that is no flag begins a command line, taken as it is
  Result<int> (*run)(World& world, const Args& args) = nullptr;  // the exit status of the program
  CommandGroup group = CommandGroup::kJobs;
  bool without_config = false;  // runs also when the configuration is broken
  bool job_words = false;       // its words are job ids: for shell completion
  std::span<const FlagSynonym> synonyms = {};
  bool underscores = false;           // "--max_restarts" is "--max-restarts"
  std::string_view other_flags = {};  // where flags go that it does not know; for the hint
};

}  // namespace overcap::cli
