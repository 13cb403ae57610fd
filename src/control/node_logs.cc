// SPDX-License-Identifier: Apache-2.0
#include "control/node_logs.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {

void AddNodeLogs(JobRecord* record) {
  if (!record->spec.resources.elastic() || record->dir.empty()) return;
  std::vector<LogFile> logs;
  for (int attempt = 1; attempt <= record->attempt; ++attempt) {
    const std::string folder = StrCat(record->dir, "/attempt-", attempt);
    const auto names = PosixFiles().List(folder);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      int node = -1, length = 0;
      const bool log = std::sscanf(name.c_str(), "rank-%d.log%n", &node, &length) == 1;
      if (log && node >= 0 && static_cast<size_t>(length) == name.size())
        logs.push_back({attempt, node, -1, StrCat(folder, "/", name)});
    }
  }
  std::sort(logs.begin(), logs.end(), [](const LogFile& a, const LogFile& b) {
    return std::pair(a.attempt, a.rank) < std::pair(b.attempt, b.rank);
  });
  if (!logs.empty()) record->logs = std::move(logs);
}

}  // namespace overcap
