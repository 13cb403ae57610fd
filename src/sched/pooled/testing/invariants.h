// SPDX-License-Identifier: Apache-2.0
// What must hold after every pass of the pooled scheduler, looked at plainly and from outside: all jobs, all
// nodes, counted anew each time. Tests call it at every step of every simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/pooled/pooled_scheduler.h"

namespace overcap::pooled {

class Invariants {
 public:
  // "": all is well; else what is wrong, in words. To be called once after each pass, with what the pass
  // said.
  std::string Look(const PooledScheduler& scheduler, const std::vector<Action>& actions, int64_t now_s) const;

 private:
  std::string Nodes(const PooledScheduler& scheduler) const;
  std::string Caps(const PooledScheduler& scheduler) const;
  std::string Victims(const PooledScheduler& scheduler, const std::vector<Action>& actions,
                      int64_t now_s) const;
  std::string Claims(const PooledScheduler& scheduler, int64_t now_s) const;
  std::string Idle(const PooledScheduler& scheduler, int64_t now_s) const;
};

}  // namespace overcap::pooled
