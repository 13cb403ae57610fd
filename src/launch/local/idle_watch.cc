// SPDX-License-Identifier: Apache-2.0
#include "launch/local/idle_watch.h"

#include "base/text.h"
#include "launch/local/stacks.h"
#include "sys/posix_files.h"

namespace overcap {

constexpr int64_t kAllStacksUs = 20'000'000;

RankStacks StacksOfRanks(const std::vector<pid_t>& pids, int64_t now_us) {
  RankStacks stacks;
  std::vector<pid_t> alive;
  for (size_t rank = 0; rank < pids.size(); ++rank) {
    if (pids[rank] <= 0) continue;
    stacks.emplace_back(static_cast<int>(rank), "");
    alive.push_back(pids[rank]);
  }
  std::vector<std::string> texts = CollectStacks(alive, now_us + kAllStacksUs);
  for (size_t i = 0; i < texts.size(); ++i) stacks[i].second = std::move(texts[i]);
  return stacks;
}

Result<void> KeepStacks(const std::string& folder, const RankStacks& stacks) {
  std::string text;
  for (const auto& [rank, stack] : stacks) text += StrCat("== rank ", rank, "\n", stack, "\n");
  return PosixFiles().WriteAtomic(folder + "/stacks.txt", text, false);
}

}  // namespace overcap
