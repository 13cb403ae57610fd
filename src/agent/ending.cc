// SPDX-License-Identifier: Apache-2.0
#include "agent/ending.h"

#include <signal.h>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

Ending MemoryLimit(const GroupEnd& end, const Resources& resources) {
  return {JobState::kFailed, kMemoryLimitStatus, SIGKILL, end.first_failed,
          StrCat("memory limit of ", FormatBytes(resources.mem_bytes), " reached")};
}

}  // namespace

Ending EndingOf(const GroupEnd& end, const Resources& resources, bool kernel_killed) {
  switch (end.cause) {
    case StopCause::kNone:
      return {JobState::kSucceeded, 0, 0, -1, ""};
    case StopCause::kMemberFailed:
      if (kernel_killed) return MemoryLimit(end, resources);
      return {JobState::kFailed, end.end.exit_status, end.end.signal, end.first_failed, end.reason};
    case StopCause::kCancelled:
      return {JobState::kCancelled, end.end.exit_status, end.end.signal, -1, ""};
    case StopCause::kTimeLimit:
      return {JobState::kFailed, kTimeLimitStatus, 0, -1,
              StrCat("time limit of ", FormatDuration(resources.time_seconds), " reached")};
    case StopCause::kMemoryLimit:
      return MemoryLimit(end, resources);
  }
  return CannotRun("unknown end");
}

Ending BeforeItsNextAttempt(Ending ending, const GroupEnd& end, const JobSpec& spec, bool requeue_asked) {
  if (requeue_asked && spec.requeue)
    return {JobState::kPreempted, ending.exit_status, ending.signal, -1, "requeued by itself"};
  const bool by_warning = end.warned && end.cause == StopCause::kMemberFailed;
  if (!spec.requeue_on_timeout || (end.cause != StopCause::kTimeLimit && !by_warning)) return ending;
  ending.state = JobState::kPreempted;
  ending.first_failed_rank = -1;
  ending.reason = StrCat("time limit of ", FormatDuration(spec.resources.time_seconds), " reached");
  return ending;
}

Ending CannotRun(const std::string& reason) {
  return {JobState::kFailed, kCannotRunStatus, 0, -1, reason};
}

}  // namespace overcap
