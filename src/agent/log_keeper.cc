// SPDX-License-Identifier: Apache-2.0
#include "agent/log_keeper.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace overcap {
namespace {

std::vector<LogBound::Log> LogsOf(const std::vector<Fd>& files) {
  std::vector<LogBound::Log> logs;
  for (size_t rank = 0; rank < files.size(); ++rank)
    logs.push_back({files[rank].Get(), StrCat("rank ", rank)});
  return logs;
}

}  // namespace

LogKeeper::LogKeeper(const std::vector<Fd>& logs, int64_t max, const Clock& clock, GroupObserver* observer,
                     ClusterWatch* watch)
    : clock_(clock), observer_(*observer), watch_(watch), bound_(LogsOf(logs), max, clock.MonotonicUs()) {}

int64_t LogKeeper::Prepare(std::vector<pollfd>* fds) {
  const int64_t next = watch_ != nullptr ? watch_->Prepare(fds) : std::numeric_limits<int64_t>::max();
  return std::min(next, bound_.DueUs());
}

bool LogKeeper::Act(std::span<const pollfd> fds) {
  bound_.LookIfDue(clock_.MonotonicUs());
  Tell();
  return watch_ != nullptr && watch_->Act(fds);
}

int64_t LogKeeper::GraceUs() const {
  return watch_ != nullptr ? watch_->GraceUs() : -1;
}

void LogKeeper::Finish() {
  bound_.Look(clock_.MonotonicUs());
  Tell();
}

void LogKeeper::Tell() {
  if (const auto note = bound_.TakeNote()) observer_.OnNote(*note);
}

}  // namespace overcap
