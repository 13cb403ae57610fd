// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <sys/types.h>

#include "base/result.h"
#include "sys/clock.h"
#include "sys/fd.h"

namespace overcap {

// A process next to the agent that kills the agent's ranks, by their process groups, when the agent is gone,
// or when it has not put off the time at which they must end: because it is stopped, or starved.
class RightGuard {
 public:
  // Forks: to be made before any thread, and before whoever takes this process's children for his own. Times
  // are those of `clock`.
  static Result<std::unique_ptr<RightGuard>> Make(const Clock& clock);
  ~RightGuard();  // the guard has ended then, by itself or killed because it is stopped
  RightGuard(const RightGuard&) = delete;

  // For SpawnRequest: the guard knows of the process, and of its group, before it runs, so there is no moment
  // in which it is not guarded.
  int announce_fd() const { return pipe_.Get(); }
  void Forget();  // all that were announced
  void KillAt(int64_t monotonic_us);

 private:
  RightGuard(Fd pipe, pid_t pid) : pipe_(std::move(pipe)), pid_(pid) {}
  void Tell(int64_t order);

  Fd pipe_;
  pid_t pid_;
  int64_t kill_at_us_ = 0;
};

}  // namespace overcap
