// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/group_event.h"
#include "model/job_state.h"
#include "sys/process.h"

namespace overcap {

// How an elastic job's attempt ended, from how its nodes' agents ended and what one of them last said of the
// group. Agents that were lost on the way count for nothing when another one ended well. Pure.
struct NodeEnds {
  std::vector<std::optional<ProcessEnd>> agents;  // nullopt: not known
  std::optional<GroupEvent> word;  // the `ended` of an agent that did not leave; a good one first
  bool told_to_stop = false;
};
Ending EndingOf(const NodeEnds& ends);

}  // namespace overcap
