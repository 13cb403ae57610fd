// SPDX-License-Identifier: Apache-2.0
#include "control/node_logs.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// Of a file in an attempt's folder: the node whose log it is, or, where logs are in a store, of which it
// tells that it has one; -1: of none.
int NodeOf(const std::string& name, bool stored) {
  const auto fits = [&name](const char* pattern) {
    int node = -1, length = 0;
    const bool found = std::sscanf(name.c_str(), pattern, &node, &length) == 1;
    return found && static_cast<size_t>(length) == name.size() ? node : -1;
  };
  if (stored && name == "agent-0.jsonl") return 0;
  const int node = stored ? fits("agent-0.node-%d.claim%n") : -1;
  return std::max(node, fits("rank-%d.log%n"));
}

}  // namespace

void AddNodeLogs(JobRecord* record) {
  if (!record->spec.resources.elastic() || record->dir.empty()) return;
  std::vector<LogFile> logs;
  for (int attempt = 1; attempt <= record->attempt; ++attempt) {
    const std::string folder = StrCat(record->dir, "/attempt-", attempt);
    const auto names = PosixFiles().List(folder);
    std::set<int> nodes;
    for (const std::string& name : names ? *names : std::vector<std::string>())
      nodes.insert(NodeOf(name, !record->spec.store.empty()));
    nodes.erase(-1);
    for (const int node : nodes) logs.push_back({attempt, node, -1, StrCat(folder, "/rank-", node, ".log")});
  }
  if (!logs.empty()) record->logs = std::move(logs);
}

}  // namespace overcap
