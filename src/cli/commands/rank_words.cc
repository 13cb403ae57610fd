// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rank_words.h"

#include "base/text.h"

namespace overcap::cli {

constexpr int kMostRanks = 1'000'000'000;

Result<std::vector<int>> ReadRanks(const Args& args) {
  std::vector<int> ranks;
  if (!args.Has("--rank")) return std::vector<int>{0};
  if (args.Get("--rank") == "all") return ranks;
  for (const std::string& word : Split(args.Get("--rank"), ',')) {
    const auto rank = ParseInt(word);
    if (!rank || *rank < 0 || *rank > kMostRanks) {
      return Fail(ErrorCode::kUsage, StrCat("--rank '", args.Get("--rank"), "' names no ranks"),
                  "write 0, 0,2 or all");
    }
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

}  // namespace overcap::cli
