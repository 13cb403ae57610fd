// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_command.h"

#include <algorithm>

#include "base/text.h"
#include "sys/variables.h"

namespace overcap {
namespace {

// All nodes of an attempt begin together, and no others come later.
constexpr const char* kJoinTimeout = "2m";
constexpr const char* kLastCall = "30s";
constexpr int64_t kSecond = 1'000'000;

}  // namespace

std::vector<std::string> LaunchWords(const NodeCommand& command) {
  const Resources& asked = command.spec.resources;
  // A warning, then TERM, then KILL: each has its part of the time.
  const int64_t grace_s = std::max<int64_t>(1, command.grace_us / 3 / kSecond);
  std::vector<std::string> words{"launch",
                                 "--nnodes",
                                 StrCat(asked.nodes, ":", std::max(asked.nodes, command.nodes)),
                                 "--nproc-per-node",
                                 StrCat(asked.ranks_per_node),
                                 "--max-restarts",
                                 StrCat(command.spec.max_restarts),
                                 "--rdzv",
                                 StrCat("auto:", command.spec.id, ".", command.attempt),
                                 "--join-timeout",
                                 command.join_timeout.empty() ? kJoinTimeout : command.join_timeout,
                                 "--last-call",
                                 kLastCall,
                                 "--grace",
                                 StrCat(grace_s, "s"),
                                 "--tee",
                                 "all",
                                 "--no-python",
                                 "--"};
  words.insert(words.end(), command.spec.command.begin(), command.spec.command.end());
  return words;
}

std::string JoinTimeoutOf(std::string_view environment) {
  const Variables variables(Split(environment, '\0'));
  return std::string(variables.Get("OVERCAP_JOIN_TIMEOUT"));
}

std::vector<std::string> WordsOfNode(std::vector<std::string> launch, const std::string& attempt_folder,
                                     int node) {
  const std::vector<std::string> place{"--node-rank", StrCat(node), "--logs",
                                       StrCat(attempt_folder, "/node-", node)};
  launch.insert(launch.begin() + 1, place.begin(), place.end());
  return launch;
}

std::vector<std::string> NodeVariables(const NodeCommand& command, std::vector<std::string> environment) {
  Variables variables(std::move(environment));
  variables.Set("OVERCAP_RDZV_FOLDER", command.attempt_folder + "/rendezvous");
  variables.Set("OVERCAP_GROUP_EVENTS", command.job_dir + "/events.jsonl");
  return variables.entries();
}

std::vector<int> ShareOf(const std::vector<int>& gpus, int nodes, int node) {
  const size_t each = gpus.size() / static_cast<size_t>(std::max(1, nodes));
  const auto first = gpus.begin() + static_cast<std::ptrdiff_t>(each * static_cast<size_t>(node));
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

}  // namespace overcap
