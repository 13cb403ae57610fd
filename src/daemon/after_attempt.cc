// SPDX-License-Identifier: Apache-2.0
#include "daemon/after_attempt.h"

#include "base/text.h"

namespace overcap {
namespace {

AfterAttempt End(Ending ending) {
  return {NextStep::kEnd, "", std::move(ending)};
}
AfterAttempt Requeue(std::string reason) {
  return {NextStep::kRequeue, std::move(reason), {}};
}

Ending Cancelled(const Job& job, Ending ended) {
  ended.state = JobState::kCancelled;
  ended.reason = job.ending.reason.empty() ? "cancelled" : job.ending.reason;
  return ended;
}

Ending CouldNotStart(const Ending& ended) {
  Ending ending = ended;
  ending.state = JobState::kFailed;
  ending.exit_status = 126;
  return ending;
}

AfterAttempt AfterLoss(const Job& job, const Ending& ended) {
  if (job.spec.requeue && job.progress.losses <= kMostLosses) return Requeue(ended.reason);
  return End(ended);
}

AfterAttempt AfterFailure(const Job& job, const Ending& ended) {
  // The group of an elastic job has done its restarts itself.
  if (job.progress.restarts > job.spec.max_restarts || job.spec.resources.elastic()) return End(ended);
  return Requeue(StrCat("restart ", job.progress.restarts, " of ", job.spec.max_restarts,
                        " after exit status ", ended.exit_status));
}

AfterAttempt AfterArraySlot(const Job& job, const Ending& ended, int failed_starts) {
  if (!job.slots.empty()) return {};
  if (job.progress.cancel_requested) return End(Cancelled(job, ArrayEnding(job)));
  if (job.array->broken) return End(*job.array->broken);
  if (failed_starts >= kMostFailedStarts) return End(CouldNotStart(ended));
  const bool may_retry = !job.array->retry.empty() && job.progress.losses <= kMostLosses;
  if (may_retry || !job.array->drained) return Requeue(ended.reason);
  return End(ArrayEnding(job));
}

}  // namespace

AfterAttempt DecideAfterAttempt(const Job& job, const Ending& ended, int failed_starts) {
  if (job.is_array()) return AfterArraySlot(job, ended, failed_starts);
  if (ended.state == JobState::kSucceeded) return End(ended);
  if (job.progress.cancel_requested) return End(Cancelled(job, ended));
  switch (ended.state) {
    case JobState::kQueued:
      return failed_starts >= kMostFailedStarts ? End(CouldNotStart(ended)) : Requeue(ended.reason);
    case JobState::kLost:
      return AfterLoss(job, ended);
    case JobState::kPreempted:
      return Requeue(ended.reason);
    case JobState::kFailed:
      return AfterFailure(job, ended);
    case JobState::kCancelled:
      return End(ended);
    default: {  // a report that names no end
      Ending lost = ended;
      lost.state = JobState::kLost;
      if (lost.reason.empty()) lost.reason = "its agent did not say how it ended";
      return End(std::move(lost));
    }
  }
}

Ending ArrayEnding(const Job& job) {
  const TaskResults& done = job.array->done;
  const int total = job.spec.array.Count();
  const size_t lost = done.lost.size() + job.array->retry.size();
  Ending ending;
  if (done.succeeded == total) {
    ending.state = JobState::kSucceeded;
    ending.exit_status = 0;
    return ending;
  }
  ending.state = done.failed.empty() && lost > 0 ? JobState::kLost : JobState::kFailed;
  ending.exit_status = done.failed.empty() ? -1 : done.failed.front().second;
  if (!done.failed.empty()) ending.reason = StrCat(done.failed.size(), " of ", total, " tasks failed");
  if (lost > 0)
    ending.reason +=
        StrCat(ending.reason.empty() ? "" : ", ", lost, " of ", total, " tasks lost their agent");
  return ending;
}

}  // namespace overcap
