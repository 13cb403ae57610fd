// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_guard.h"

#include <algorithm>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "agent/engine_process.h"
#include "base/text.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kKillStep{100};
constexpr std::chrono::milliseconds kLastKill{2000};

// The agent pins itself: what it starts inherits that, at no cost per rank.
std::string Pin(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return sched_setaffinity(0, sizeof set, &set) == 0 ? "" : strerror(errno);
}

std::string CpuList(const std::vector<int>& cpus) {
  std::vector<std::string> words;
  for (int cpu : cpus) words.push_back(std::to_string(cpu));
  return Join(words, ",");
}

}  // namespace

RankGuard::RankGuard(const JobSpec& spec, const AgentOptions& options) : resources_(spec.resources) {
  // A cluster counts the time from before its agent came, and ends the job itself.
  if (!options.under.empty()) resources_.time_seconds = 0;
  if (!options.cpus.empty()) pin_error_ = Pin(options.cpus);
  // Joining a group takes the kernel up to 20 ms: only for limits that were asked for.
  const bool limited = resources_.mem_bytes > 0 || (resources_.cpus > 0 && spec.cpus_asked);
  if (!options.cgroups || !options.under.empty() || !limited) return;
  CgroupRequest request;
  request.name = StrCat("overcap-", spec.id, "-", options.attempt, "-", options.slot);
  request.memory_bytes = resources_.mem_bytes;
  request.cpus = pin_error_.empty() ? CpuList(options.cpus) : "";
  if (Result<Cgroup> made = Cgroup::Create(request)) cgroup_ = std::move(*made);
}

RankGuard::~RankGuard() {
  if (!cgroup_) return;
  ReleaseEngines();
  (void)cgroup_->KillAll(kLastKill);
  (void)cgroup_->Remove(kLastKill);
}

std::vector<std::string> RankGuard::ProcsFiles() const {
  return cgroup_ ? cgroup_->ProcsFiles() : std::vector<std::string>();
}

GroupLimits RankGuard::Limits() const {
  GroupLimits limits;
  limits.time_us = resources_.time_seconds * 1'000'000;
  if (resources_.mem_bytes > 0) limits.over_memory = [this] { return OverMemory(); };
  if (cgroup_) limits.kill_more = [this] { KillGroup(); };
  limits.leave_alone = IsEngineProcess;
  return limits;
}

void RankGuard::Begin() {
  if (cgroup_) kills_before_ = cgroup_->OomKills();
}

bool RankGuard::KernelKilled() const {
  return cgroup_ && cgroup_->LimitsMemory() && cgroup_->OomKills() > kills_before_;
}

// Resident memory counts shared pages once per process, so only when that is too much the dear sum is made.
bool RankGuard::OverMemory() const {
  if (cgroup_ && cgroup_->LimitsMemory()) return KernelKilled();
  std::vector<pid_t> pids = LikelyChildrenOf(getpid());
  for (size_t i = 0; i < pids.size();
       ++i) {  // engines, and who holds the job's mounts, are none of its ranks
    if (!IsEngineProcess(pids[i])) continue;
    const std::vector<pid_t> below = LikelyChildrenOf(pids[i]);
    std::erase_if(pids, [&](pid_t pid) { return std::find(below.begin(), below.end(), pid) != below.end(); });
  }
  std::erase_if(pids, IsEngineProcess);
  return ResidentBytes(pids) > resources_.mem_bytes && ProportionalBytes(pids) > resources_.mem_bytes;
}

// An engine that a rank started is in the ranks' group, and all it started is.
void RankGuard::ReleaseEngines() const {
  for (const pid_t pid : cgroup_->Processes()) {
    if (!IsEngineProcess(pid)) continue;
    (void)cgroup_->Release(pid);
    for (const pid_t child : ChildrenOf(pid)) (void)cgroup_->Release(child);
  }
}

void RankGuard::KillGroup() const {
  ReleaseEngines();
  (void)cgroup_->KillAll(kKillStep);
}

}  // namespace overcap
