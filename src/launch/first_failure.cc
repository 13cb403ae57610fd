// SPDX-License-Identifier: Apache-2.0
#include "launch/first_failure.h"

#include <algorithm>
#include <csignal>

namespace overcap {
namespace {

bool IsBad(const LauncherFinding& finding) {
  return !finding.host_failed && finding.end && !finding.end->ok();
}

// As launchers end ranks, and as we do. Anybody else may do that, too.
bool IsStopped(const ProcessEnd& end) {
  return end.signal == SIGKILL || end.signal == SIGTERM;
}

}  // namespace

const RankFailure* FirstFailure::Failed() const {
  const auto found = std::find_if(ended_.begin(), ended_.end(),
                                  [](const RankFailure& each) { return each.end_known && !each.end.ok(); });
  return found == ended_.end() ? nullptr : &*found;
}

const RankFailure* FirstFailure::EndOf(int rank) const {
  const auto found = std::find_if(ended_.begin(), ended_.end(),
                                  [rank](const RankFailure& each) { return each.rank == rank; });
  return found == ended_.end() ? nullptr : &*found;
}

bool FirstFailure::Certain(const std::vector<LauncherFinding>& findings) const {
  return Failed() != nullptr || std::any_of(findings.begin(), findings.end(), IsBad);
}

// What its host told is more exact than what the launcher says of the same rank.
std::optional<RankFailure> FirstFailure::Of(const LauncherFinding& finding) const {
  int rank = finding.rank;
  std::string host = finding.host;
  for (const Begun& each : begun_) {
    if (each.rank == rank || (rank < 0 && finding.pid > 0 && each.pid == finding.pid)) {
      rank = each.rank;
      host = each.host;
      break;
    }
  }
  if (rank < 0) return std::nullopt;
  const RankFailure* told = EndOf(rank);
  if (told != nullptr && told->end_known && told->end.ok()) return std::nullopt;
  RankFailure failure;
  if (told != nullptr) failure = *told;
  failure.rank = rank;
  failure.host = host;
  if (told == nullptr || !told->end_known || finding.aborted) failure.end = *finding.end;
  failure.end_known = true;
  failure.out_of_memory = failure.out_of_memory || finding.out_of_memory;
  return failure;
}

std::optional<RankFailure> FirstFailure::Choose(const std::vector<LauncherFinding>& findings,
                                                const std::optional<ProcessEnd>& launcher) const {
  const RankFailure* failed = Failed();
  const bool doubtful = failed != nullptr && !failed->out_of_memory && IsStopped(failed->end);
  for (const LauncherFinding& finding : findings) {
    if (!IsBad(finding)) continue;
    const bool counts = finding.aborted || failed == nullptr || (doubtful && !IsStopped(*finding.end));
    if (const auto told = counts ? Of(finding) : std::nullopt) return told;
  }
  if (doubtful && launcher && !launcher->ok()) {
    for (const RankFailure& each : ended_) {
      const bool by_itself = each.end_known && each.end.signal == 0 && each.end.exit_status != 0;
      if (by_itself && each.end.exit_status == launcher->exit_status) return each;
    }
  }
  if (failed != nullptr) return *failed;
  if (!launcher || launcher->ok()) return std::nullopt;
  for (RankFailure each : ended_) {
    if (each.end_known) continue;
    each.end = *launcher;
    return each;
  }
  return std::nullopt;
}

}  // namespace overcap
