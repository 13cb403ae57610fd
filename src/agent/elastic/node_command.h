// SPDX-License-Identifier: Apache-2.0
// What the agent of one node of an elastic job is started with: `overcap launch` with a range of nodes. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_spec.h"

namespace overcap {

struct NodeCommand {
  const JobSpec& spec;
  int attempt = 1;
  int nodes = 1;  // that it got
  std::string job_dir;
  std::string attempt_folder;
  int64_t grace_us = 10'000'000;  // for all of an ending: the warning, TERM and KILL
  std::string join_timeout = "";  // how long fewer than the least nodes wait; "": 2 minutes
  int64_t slack_us = 0;           // more time for nodes that first have to get the code
};

// "launch ...", the same for all nodes.
std::vector<std::string> LaunchWords(const NodeCommand& command);

// What the job's own environment (NUL-separated) says of it: $OVERCAP_JOIN_TIMEOUT.
std::string JoinTimeoutOf(std::string_view environment);

// The group's own events in a job's folder: of the job, or, where it goes through a store, of the attempt,
// whose first node may be another one than that of the last.
std::string GroupEventsFile(const NodeCommand& command);

// What makes these words those of one node: its place, and where its logs go.
std::vector<std::string> WordsOfNode(std::vector<std::string> launch, const std::string& attempt_folder,
                                     int node);

// The node agents' own variables over those of the job: where their rendezvous and their group's events are.
std::vector<std::string> NodeVariables(const NodeCommand& command, std::vector<std::string> environment);

// What makes a process a rank it gets from its node's agent.
JobSpec NoRank(const JobSpec& spec);

// Of `count` GPUs that so many nodes share, those of one node.
std::vector<int> ShareOf(const std::vector<int>& gpus, int nodes, int node);

}  // namespace overcap
