// SPDX-License-Identifier: Apache-2.0
#include "launch/retry.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {

bool WorthRetrying(const AttemptEnd& end) {
  switch (end.cause) {
    case AttemptEnd::Cause::kRankFailed:
      return !end.first || end.first->reason.empty();
    case AttemptEnd::Cause::kIdle:
      return true;
    case AttemptEnd::Cause::kHostFailed:
      return !end.bad_hosts.empty();
    case AttemptEnd::Cause::kDone:
    case AttemptEnd::Cause::kCancelled:
    case AttemptEnd::Cause::kCannotRun:
      return false;
  }
  return false;
}

int64_t BackOffUs(int retry) {
  constexpr int64_t kMostUs = 60'000'000;
  return std::min<int64_t>(kMostUs, int64_t{1'000'000} << std::min(retry - 1, 10));
}

Result<RankPlan> PlanAgain(const std::vector<AllocatedHost>& hosts, const PlanRequest& request,
                           const std::vector<std::string>& bad_hosts) {
  std::vector<AllocatedHost> good;
  for (const AllocatedHost& host : hosts) {
    if (std::find(bad_hosts.begin(), bad_hosts.end(), host.name) == bad_hosts.end()) good.push_back(host);
  }
  if (good.empty()) {
    return Fail(ErrorCode::kUnavailable, "no host is left to try again on");
  }
  PlanRequest again = request;
  // As many hosts as before while the spares last; what is left over of them stays in reserve.
  const int used = request.nodes > 0 ? request.nodes : static_cast<int>(hosts.size()) - request.spare_nodes;
  const int left = static_cast<int>(good.size());
  again.nodes = request.nodes > 0 ? std::min(request.nodes, left) : 0;
  again.spare_nodes = std::max(0, left - std::max(used, 1));
  return PlanRanks(good, again);
}

}  // namespace overcap
