// SPDX-License-Identifier: Apache-2.0
#include "launch/allocation.h"

namespace overcap {

const char* SchedulerName(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::kLocal:
      return "local";
    case Scheduler::kSlurm:
      return "slurm";
    case Scheduler::kPbs:
      return "pbs";
    case Scheduler::kMpi:
      return "mpi";
  }
  return "local";
}

}  // namespace overcap
