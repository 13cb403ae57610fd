// SPDX-License-Identifier: Apache-2.0
// Some nodes pull the same store side by side (docs/formats/fanout.md, "The first nodes pull it").
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "control/fanout/fanout.h"
#include "control/fanout/node_session.h"

namespace overcap {

struct PulledNode {
  int node = 0;
  std::vector<fanout::Object> objects;
  std::optional<fanout::Known> known;  // it has pulled
  std::optional<Error> not_pulled;     // it cannot, and is well
  std::optional<Error> failed;         // the host has failed; none of the three: it was too slow
};

// Returns when all have ended, or some time after the first has pulled. In the order in which they ended.
std::vector<PulledNode> RunPullRound(const std::vector<int>& nodes, const PullOrder& order,
                                     const FanoutRequest& request);

}  // namespace overcap
