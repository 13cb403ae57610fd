// SPDX-License-Identifier: Apache-2.0
#include "launch/idle_watch.h"

#include "base/text.h"
#include "launch/stacks.h"
#include "sys/clock.h"
#include "sys/posix_files.h"

namespace overcap {

constexpr int64_t kAllStacksUs = 20'000'000;

RankStacks CollectStacks(const std::vector<pid_t>& pids) {
  const int64_t deadline = PosixClock().MonotonicUs() + kAllStacksUs;
  RankStacks stacks;
  for (size_t rank = 0; rank < pids.size(); ++rank) {
    if (pids[rank] > 0) stacks.emplace_back(static_cast<int>(rank), CollectStack(pids[rank], deadline));
  }
  return stacks;
}

Result<void> KeepStacks(const std::string& folder, const RankStacks& stacks) {
  std::string text;
  for (const auto& [rank, stack] : stacks) text += StrCat("== rank ", rank, "\n", stack, "\n");
  return PosixFiles().WriteAtomic(folder + "/stacks.txt", text, false);
}

}  // namespace overcap
