// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/first_failure.h"

#include <algorithm>
#include <csignal>

namespace overcap {
namespace {

constexpr int64_t kNextMomentUs = 20'000;

bool IsBad(const LauncherFinding& finding) {
  return !finding.host_failed && finding.end && !finding.end->ok();
}

// As launchers end ranks, and as we do. Anybody else may do that, too.
bool IsStopped(const ProcessEnd& end) {
  return end.signal == SIGKILL || end.signal == SIGTERM;
}

}  // namespace

const FirstFailure::Ended* FirstFailure::Failed() const {
  const auto found = std::find_if(ended_.begin(), ended_.end(),
                                  [](const Ended& each) { return each.how.end_known && !each.how.end.ok(); });
  return found == ended_.end() ? nullptr : &*found;
}

const RankFailure* FirstFailure::EndOf(int rank) const {
  const auto found =
      std::find_if(ended_.begin(), ended_.end(), [rank](const Ended& each) { return each.how.rank == rank; });
  return found == ended_.end() ? nullptr : &found->how;
}

// A launcher may see that a rank is about to end, and kill all others before it has. Then many are killed, or
// it ends in the next moment, or the launcher passes its exit status on.
const RankFailure* FirstFailure::BehindKill(const Ended& killed,
                                            const std::optional<ProcessEnd>& launcher) const {
  const auto kills = std::count_if(ended_.begin(), ended_.end(), [](const Ended& each) {
    return each.how.end.signal == SIGKILL && !each.how.out_of_memory;
  });
  for (const Ended& each : ended_) {
    const ProcessEnd& end = each.how.end;
    if (!each.how.end_known || end.signal != 0 || end.ok()) continue;
    const bool passed_on = launcher && launcher->exit_status == end.exit_status;
    if (passed_on || kills > 1 || each.at_us - killed.at_us <= kNextMomentUs) return &each.how;
  }
  return nullptr;
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
  const Ended* failed = Failed();
  const bool doubtful = failed != nullptr && !failed->how.out_of_memory && IsStopped(failed->how.end);
  for (const LauncherFinding& finding : findings) {
    if (!IsBad(finding)) continue;
    const bool counts = finding.aborted || failed == nullptr || (doubtful && !IsStopped(*finding.end));
    if (auto told = counts ? Of(finding) : std::nullopt) return told;
  }
  const RankFailure* behind = doubtful ? BehindKill(*failed, launcher) : nullptr;
  if (behind != nullptr) return *behind;
  if (failed != nullptr) return failed->how;
  if (!launcher || launcher->ok()) return std::nullopt;
  for (const Ended& each : ended_) {
    if (each.how.end_known) continue;
    RankFailure guess = each.how;
    guess.end = *launcher;
    return guess;
  }
  return std::nullopt;
}

}  // namespace overcap
