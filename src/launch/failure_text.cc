// SPDX-License-Identifier: Apache-2.0
#include "launch/failure_text.h"

#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

using Cause = AttemptEnd::Cause;

std::string SignalText(int sig) {
  const char* const name = sigabbrev_np(sig);
  return name == nullptr ? StrCat("signal ", sig) : StrCat("signal ", sig, " (SIG", name, ")");
}

std::string HowItEnded(const RankFailure& failure) {
  if (!failure.reason.empty()) return failure.reason;
  if (!failure.end_known) return "it is gone, and its launcher did not tell its exit status";
  if (failure.out_of_memory) {
    return StrCat("killed by the kernel because ", failure.host, " or its share of it ran out of memory");
  }
  if (failure.end.signal != 0) return StrCat("killed by ", SignalText(failure.end.signal));
  return StrCat("exit status ", failure.end.exit_status);
}

std::string RankLine(const RankFailure& failure) {
  const bool started = failure.reason.empty();
  return StrCat("rank ", failure.rank, " on '", failure.host,
                started ? "' failed first: " : "' was not started: ", HowItEnded(failure),
                failure.message.empty() ? "" : ": ", failure.message);
}

}  // namespace

int ExitStatusOf(const AttemptEnd& end) {
  switch (end.cause) {
    case Cause::kDone:
      return 0;
    case Cause::kRankFailed:
      return end.first && end.first->end_known && end.first->end.exit_status > 0 ? end.first->end.exit_status
                                                                                 : 1;
    case Cause::kIdle:
      return kIdleStatus;
    case Cause::kCancelled:
      return 128 + (end.signal > 0 ? end.signal : SIGTERM);
    case Cause::kHostFailed:
    case Cause::kCannotRun:
      return ExitStatus(end.code);
  }
  return ExitStatus(ErrorCode::kInternal);
}

std::string EndLine(const AttemptEnd& end, int64_t idle_us) {
  switch (end.cause) {
    case Cause::kDone:
      return "";
    case Cause::kRankFailed:
      return end.first && end.first->rank >= 0 ? RankLine(*end.first) : end.message;
    case Cause::kIdle:
      return StrCat("no rank has written anything for ", FormatElapsed(idle_us), ": all were stopped");
    case Cause::kCancelled:
      return StrCat("stopped by ", SignalText(end.signal));
    case Cause::kHostFailed:
    case Cause::kCannotRun:
      return end.message;
  }
  return end.message;
}

std::string_view CauseName(Cause cause) {
  switch (cause) {
    case Cause::kDone:
      return "done";
    case Cause::kRankFailed:
      return "rank_failed";
    case Cause::kHostFailed:
      return "host_failed";
    case Cause::kIdle:
      return "idle";
    case Cause::kCancelled:
      return "cancelled";
    case Cause::kCannotRun:
      return "cannot_run";
  }
  return "cannot_run";
}

}  // namespace overcap
