// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/rank_family.h"

#include <algorithm>
#include <csignal>
#include <unistd.h>

#include "sys/proc_table.h"
#include "sys/warning.h"

namespace overcap {

std::vector<pid_t> BegunBy(const WatchedRanks& ranks, const std::string& tag) {
  std::vector<pid_t> pids = ProcessesWithEnvironment(tag);
  for (const auto& rank : ranks) {
    if (!rank->alive()) continue;
    for (const pid_t child : LikelyChildrenOf(rank->pid())) pids.push_back(child);
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  std::erase_if(pids, [&ranks](pid_t pid) {
    return pid == getpid() || std::any_of(ranks.begin(), ranks.end(), [pid](const auto& rank) {
             return rank->alive() && rank->pid() == pid;
           });
  });
  return pids;
}

void WarnFamily(const WatchedRanks& ranks, const std::string& tag) {
  std::vector<pid_t> pids = BegunBy(ranks, tag);
  for (const auto& rank : ranks) {
    if (rank->alive()) pids.push_back(rank->pid());
  }
  (void)SendWarning(pids, {}, false);
}

void SignalFamily(const WatchedRanks& ranks, const std::string& tag, int sig) {
  std::vector<pid_t> groups;
  for (const auto& rank : ranks) {
    if (const auto group = rank->Group()) groups.push_back(*group);
  }
  const std::vector<pid_t> others = BegunBy(ranks, tag);
  for (const auto& rank : ranks) rank->Signal(sig);
  for (const pid_t pid : others) {
    if (std::find(groups.begin(), groups.end(), getpgid(pid)) == groups.end()) kill(pid, sig);
  }
}

}  // namespace overcap
