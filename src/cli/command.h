// SPDX-License-Identifier: Apache-2.0
// A command is one .cc with a `const Command`, one .md with its help, and one line in all_commands.cc.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap::cli {

class World;  // what a command may use: configuration, clusters, terminal (world.h)

// One flag; the table drives parsing, "did you mean", --help's checks and shell completion.
struct Flag {
  std::string_view name;        // "--gpus"
  std::string_view short_name;  // "-n" or ""
  std::string_view value;       // "GPUS": takes a value; "": a switch
  std::string_view summary;     // one line
  bool repeated = false;        // may be given several times
};

// The words after the verb, taken apart.
class Args {
 public:
  bool Has(std::string_view flag) const;                               // by long name: "--gpus"
  std::string_view Get(std::string_view flag) const;                   // last value, "" when not given
  std::vector<std::string> All(std::string_view flag) const;           // every value, in order
  Result<long long> GetInt(std::string_view flag, long long absent, long long min, long long max) const;
  const std::vector<std::string>& words() const { return words_; }     // positional words; after `--` as they are

  std::multimap<std::string, std::string, std::less<>> flags_;
  std::vector<std::string> words_;
};

struct Command {
  std::string_view name;                       // "query"; "daemon status" for a command of a group
  std::vector<std::string_view> aliases;       // {"q"}
  std::string_view summary;                    // one line for `overcap --help`
  std::string_view usage;                      // "[-f] [--rank R] ID"
  std::vector<Flag> flags;                     // beside the global ones (--json, --help, -c, ...)
  int min_words = 0;
  int max_words = -1;                          // -1: any number
  bool takes_command = false;                  // the first word that is no flag begins a command line, taken as it is
  Result<int> (*run)(World& world, const Args& args);  // the exit status of the program
};

}  // namespace overcap::cli
