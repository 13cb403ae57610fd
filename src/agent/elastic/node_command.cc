// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_command.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "sys/variables.h"

namespace overcap {
namespace {

// All nodes of an attempt begin together, and no others come later.
constexpr const char* kJoinTimeout = "2m";
constexpr int64_t kLastCall = 30;
constexpr int64_t kSecond = 1'000'000;

// Nothing is added to what makes no sense: `launch` says so.
std::string Longer(const std::string& duration, int64_t seconds) {
  const auto asked = ParseDurationSeconds(duration);
  return asked && seconds > 0 ? StrCat(*asked + seconds, "s") : duration;
}

}  // namespace

std::vector<std::string> LaunchWords(const NodeCommand& command) {
  const Resources& asked = command.spec.resources;
  const int64_t grace_s = std::max<int64_t>(1, command.grace_us / kSecond);
  const int64_t slack_s = (command.slack_us + kSecond - 1) / kSecond;
  std::vector<std::string> words{
      "launch",
      "--nnodes",
      StrCat(asked.nodes, ":", std::max(asked.nodes, command.nodes)),
      "--nproc-per-node",
      StrCat(asked.ranks_per_node),
      "--max-restarts",
      StrCat(command.spec.max_restarts),
      "--rdzv",
      StrCat("auto:", command.spec.id, ".", command.attempt),
      "--join-timeout",
      Longer(command.join_timeout.empty() ? kJoinTimeout : command.join_timeout, slack_s),
      "--last-call",
      StrCat(kLastCall + slack_s, "s"),
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

std::string GroupEventsFile(const NodeCommand& command) {
  if (command.spec.store.empty()) return command.job_dir + "/events.jsonl";
  return command.attempt_folder + "/agent-0.group.jsonl";
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
  variables.Set("OVERCAP_GROUP_EVENTS", GroupEventsFile(command));
  if (command.spec.logs_max >= 0) variables.Set("OVERCAP_LOGS_MAX", StrCat(command.spec.logs_max));
  return variables.entries();
}

JobSpec NoRank(const JobSpec& spec) {
  JobSpec none = spec;
  none.batch = true;
  return none;
}

std::vector<int> ShareOf(const std::vector<int>& gpus, int nodes, int node) {
  const size_t each = gpus.size() / static_cast<size_t>(std::max(1, nodes));
  const auto first = gpus.begin() + static_cast<std::ptrdiff_t>(each * static_cast<size_t>(node));
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

}  // namespace overcap
