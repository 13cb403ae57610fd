// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap {

// When ranks have been silent for too long. Pure; times are monotonic microseconds.
class IdleWatch {
 public:
  explicit IdleWatch(int64_t limit_us) : limit_us_(limit_us) {}  // 0: never
  void Alive(int64_t now_us) { last_us_ = now_us; }
  void Stop() { limit_us_ = 0; }
  int64_t DeadlineUs() const {
    return limit_us_ == 0 ? std::numeric_limits<int64_t>::max() : last_us_ + limit_us_;
  }
  bool Expired(int64_t now_us) const { return now_us >= DeadlineUs(); }

 private:
  int64_t limit_us_;
  int64_t last_us_ = 0;
};

using RankStacks = std::vector<std::pair<int, std::string>>;  // rank, text

// Of the processes of ranks 0, 1, ...; a pid of 0 has ended and is left out. Takes some seconds at most.
RankStacks StacksOfRanks(const std::vector<pid_t>& pids, int64_t now_us);

// Writes them to `folder`/stacks.txt.
Result<void> KeepStacks(const std::string& folder, const RankStacks& stacks);

}  // namespace overcap
