// SPDX-License-Identifier: Apache-2.0
// CheckSbatchArgs() of sbatch_script.h.
#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/sbatch_script.h"

namespace overcap {
namespace {

// What Overcap says itself, and what would make sbatch do something else than submit.
constexpr std::string_view kOwnLong[] = {"array",
                                         "batch",
                                         "chdir",
                                         "clusters",
                                         "comment",
                                         "dependency",
                                         "error",
                                         "export",
                                         "export-file",
                                         "get-user-env",
                                         "gid",
                                         "help",
                                         "hold",
                                         "ignore-pbs",
                                         "input",
                                         "job-name",
                                         "kill-on-invalid-dep",
                                         "no-requeue",
                                         "nodes",
                                         "ntasks-per-node",
                                         "open-mode",
                                         "output",
                                         "parsable",
                                         "requeue",
                                         "signal",
                                         "test-only",
                                         "uid",
                                         "usage",
                                         "version",
                                         "wait",
                                         "wrap"};
constexpr std::string_view kOwnShort = "aMdeHhoiJNDVW";
// Short options without a value, which may stand together: "-kO".
constexpr std::string_view kShortFlags = "hHIkOQsuvVWX";
constexpr std::string_view kLongFlags[] = {
    "contiguous", "exclusive",  "no-kill",       "overcommit", "oversubscribe", "propagate", "quiet",
    "reboot",     "spread-job", "use-min-nodes", "verbose",    "no-bell",       "gres-flags"};

tl::unexpected<Error> OwnOption(std::string_view word) {
  return Fail(ErrorCode::kUsage, StrCat("sbatch option ", Quoted(word), " is set by overcap itself"),
              "use overcap's own option for it: overcap submit --help");
}

bool IsOwnLong(std::string_view name) {
  // sbatch takes an option by its beginning too: --arr.
  return std::any_of(std::begin(kOwnLong), std::end(kOwnLong),
                     [&](std::string_view own) { return own.substr(0, name.size()) == name; });
}

// Whether the word after this one is its value.
bool LongWantsValue(std::string_view name, bool has_value) {
  return !has_value && std::find(std::begin(kLongFlags), std::end(kLongFlags), name) == std::end(kLongFlags);
}

Result<bool> CheckLong(std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
  if (name.empty()) return Fail(ErrorCode::kUsage, StrCat(Quoted(word), " is no option of sbatch"));
  if (IsOwnLong(name)) return OwnOption(word);
  return LongWantsValue(name, equals != std::string_view::npos);
}

Result<bool> CheckShort(std::string_view word) {
  for (size_t i = 1; i < word.size(); ++i) {
    if (kOwnShort.find(word[i]) != std::string_view::npos) return OwnOption(word);
    if (kShortFlags.find(word[i]) == std::string_view::npos) return i + 1 == word.size();
  }
  return false;
}

bool HasControlCharacter(std::string_view word) {
  return std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

}  // namespace

Result<void> CheckSbatchArgs(const std::vector<std::string>& args) {
  bool wants_value = false;
  for (const std::string& word : args) {
    if (HasControlCharacter(word)) {
      return Fail(ErrorCode::kUsage, StrCat("sbatch argument ", Quoted(word), " holds a control character"));
    }
    const bool option = word.size() > 1 && word[0] == '-';
    if (!option && !wants_value) {
      return Fail(ErrorCode::kUsage,
                  StrCat("sbatch argument ", Quoted(word), " would be taken for the script"),
                  "write options with their values as one word: --mem=4G");
    }
    if (!option) {
      wants_value = false;
      continue;
    }
    OC_TRY(wants, word[1] == '-' ? CheckLong(word) : CheckShort(word));
    wants_value = wants;
  }
  if (wants_value && args.back()[1] != '-') {
    return Fail(ErrorCode::kUsage, StrCat("sbatch argument ", Quoted(args.back()), " has no value"));
  }
  return {};
}

}  // namespace overcap
