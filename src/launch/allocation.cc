// SPDX-License-Identifier: Apache-2.0
#include "launch/allocation.h"

namespace overcap {

const char* SchedulerName(SchedulerKind scheduler) {
  switch (scheduler) {
    case SchedulerKind::kLocal:
      return "local";
    case SchedulerKind::kSlurm:
      return "slurm";
    case SchedulerKind::kPbs:
      return "pbs";
    case SchedulerKind::kMpi:
      return "mpi";
  }
  return "local";
}

}  // namespace overcap
