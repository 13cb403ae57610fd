// SPDX-License-Identifier: Apache-2.0
#include "daemon/posix_agents.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/clock.h"
#include "sys/gpu_filter.h"
#include "sys/limits.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/process.h"

extern char** environ;

namespace overcap {
namespace {

constexpr int kKillRounds = 50;
constexpr std::chrono::milliseconds kGroupPatience{500};
constexpr int kSpareNotWorthIt = 3;  // exit status of `overcap agent spare` for a small tree
constexpr size_t kMostSmallSnapshots = 1000;
constexpr std::string_view kTrashHelper = "trash", kSpareHelper = "spare";

std::string JoinInts(const std::vector<int>& values) {
  std::string out;
  for (const int value : values) out += StrCat(out.empty() ? "" : ",", value);
  return out;
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  return env;
}

std::string JoinIds(const std::vector<int64_t>& values) {
  std::string out;
  for (const int64_t value : values) out += StrCat(out.empty() ? "" : ",", value);
  return out;
}

// The words that make `overcap agent WORDS...` a process of the owner's.
std::vector<std::string> AsOwner(const JobOwner& owner, const std::string& area, const std::string& claim,
                                 const std::vector<std::string>& words) {
  std::vector<NamedLimit> limits;
  for (const ResourceLimit& limit : owner.limits) limits.push_back({limit.name, limit.soft, limit.hard});
  std::vector<std::string> out = {"as",
                                  "--uid",
                                  std::to_string(owner.uid),
                                  "--gid",
                                  std::to_string(owner.gid),
                                  "--groups",
                                  JoinIds(owner.groups),
                                  "--limits",
                                  FormatLimits(limits),
                                  "--area",
                                  area};
  if (!claim.empty()) out.insert(out.end(), {"--claim", claim});
  out.emplace_back("--");
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

std::string GroupName(std::string_view job_id, int attempt, int slot) {
  return StrCat("overcap-", job_id, "-", attempt, "-", slot);
}

// The limit of a slot's control group. It is above the job's, so that an agent notices first and reports it;
// the kernel's limit is for an agent that its user has stopped or changed.
int64_t WithAgent(int64_t memory_bytes) {
  constexpr int64_t kAgentBytes = 64 << 20;
  return memory_bytes + memory_bytes / 16 + kAgentBytes;
}

void EndGroup(const std::string& name) {
  auto group = Cgroup::Find(name);
  if (!group) return;
  (void)group->KillAll(kGroupPatience);
  (void)group->Remove(kGroupPatience);
}

// Makes a new control group of this name, after removing one that a dead process has left. `procs`: the files
// by which a process joins it; empty where the machine gives no group.
struct JobGroup {
  std::vector<std::string> procs;
  bool private_gpus = false;
};
JobGroup GroupFor(CgroupRequest request) {
  if (request.memory_bytes > 0) request.memory_bytes = WithAgent(request.memory_bytes);
  auto group = Cgroup::Create(request);
  if (!group && group.error().code == ErrorCode::kConflict) {
    EndGroup(request.name);
    group = Cgroup::Create(request);
  }
  if (!group && std::exchange(request.memory_bytes, 0) > 0) group = Cgroup::Create(request);
  return group ? JobGroup{group->ProcsFiles(), group->LimitsGpus()} : JobGroup();
}

// N of the /dev/nvidiaN of these GPUs: as the driver says for their UUIDs, else their indices.
std::vector<int> MinorsOf(const AgentStart& start) {
  const std::vector<NvidiaNode> nodes = NvidiaNodes();
  std::vector<int> minors;
  for (size_t i = 0; i < start.gpus.size(); ++i) {
    const std::string uuid = i < start.gpu_uuids.size() ? start.gpu_uuids[i] : "";
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const NvidiaNode& one) { return !uuid.empty() && one.uuid == uuid; });
    minors.push_back(node == nodes.end() ? start.gpus[i] : node->minor);
  }
  return minors;
}

std::string HelperGroup(int64_t uid, std::string_view kind) {
  return StrCat("overcap-helper-", uid, "-", kind);
}

bool BelongsTo(pid_t pid, int64_t uid) {
  const std::string text = PosixFiles().Read(StrCat("/proc/", pid, "/status")).value_or("");
  return text.find(StrCat("\nUid:\t", uid, "\t")) != std::string::npos;
}

int SendSignal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

Fd OpenPidfd(pid_t pid) {
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace

PosixAgents::PosixAgents(std::string binary, std::string log_path, int grace_seconds)
    : binary_(std::move(binary)),
      log_path_(std::move(log_path)),
      grace_seconds_(std::to_string(grace_seconds)),
      env_(CurrentEnvironment()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      log_(open(log_path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)),
      log_bound_({{log_.Get(), "the engine"}}, kLogsMaxByFileSystem, 0) {}

Result<ProcessIdentity> PosixAgents::Start(const AgentStart& start) {
  log_bound_.LookIfDue(PosixClock().MonotonicUs());  // agents that complain make it grow
  std::vector<std::string> words = {"--job",     start.job_dir,
                                    "--store",   start.store_dir,
                                    "--attempt", std::to_string(start.attempt),
                                    "--slot",    std::to_string(start.slot),
                                    "--gpus",    JoinInts(start.gpus),
                                    "--cpus",    JoinInts(start.cpus),
                                    "--grace",   grace_seconds_};
  if (!start.retry_tasks.empty()) {
    words.insert(words.end(), {"--retry-tasks", JoinInts(start.retry_tasks)});
  }
  if (start.nodes != 1) words.insert(words.end(), {"--nodes", std::to_string(start.nodes)});
  if (start.time_seconds > 0) words.insert(words.end(), {"--time", std::to_string(start.time_seconds)});
  if (start.memory_bytes > 0)
    words.insert(words.end(), {"--memory-bytes", std::to_string(start.memory_bytes)});
  SpawnRequest request;
  request.program = binary_;
  request.env = env_;
  if (start.owner.told()) {
    const std::optional<std::vector<int>> minors =
        start.private_gpus ? std::optional(MinorsOf(start)) : std::nullopt;
    const JobGroup group =
        GroupFor({GroupName(start.job_id, start.attempt, start.slot), start.memory_bytes, "", minors});
    if (group.private_gpus) words.insert(words.end(), {"--private-gpus", "yes"});
    words = AsOwner(start.owner, start.area, start.claim, words);
    request.env = {StrCat("OVERCAP_HOST=", HostNameIn(OwnHost()))};  // for the claim
    // All that the job starts stays in it, whatever it does: what is left at its end is killed.
    request.cgroup_procs = group.procs;
  }
  request.argv = {"overcap", "agent"};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.cwd = "/";
  request.stderr_fd = log_.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  // Until the agent is ready to take them, so that a cancel right after the start is not lost.
  request.blocked_signals = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};
  OC_TRY(spawned, Spawn(request));
  // One that has ended already has no identity any more; its pidfd tells.
  const ProcessIdentity identity = Identify(spawned.pid).value_or(ProcessIdentity{spawned.pid, 0, BootId()});
  started_[spawned.pid] = std::move(spawned.pidfd);
  return identity;
}

std::string PosixAgents::CurrentBoot() const {
  return BootId();
}

std::string PosixAgents::CurrentHost() const {
  return OwnHost();
}

bool PosixAgents::IsAlive(const ProcessIdentity& agent) const {
  return overcap::IsAlive(agent);
}

int64_t PosixAgents::RunningForUs(const ProcessIdentity& agent) const {
  constexpr int64_t kSecondUs = 1'000'000;
  const auto now_us = [](clockid_t id) {
    timespec now{};
    clock_gettime(id, &now);
    return int64_t{now.tv_sec} * kSecondUs + now.tv_nsec / 1000;
  };
  const int64_t ticks_a_second = std::max<int64_t>(1, sysconf(_SC_CLK_TCK));
  const auto started_us = static_cast<int64_t>(agent.start_ticks) * kSecondUs / ticks_a_second;
  // Ticks count from the boot on and include sleep, of which we do not know when it was.
  return std::max<int64_t>(0, now_us(CLOCK_MONOTONIC) - started_us);
}

Result<void> PosixAgents::Watch(const ProcessIdentity& agent, const AgentToken& token) {
  Fd pidfd;
  if (auto own = started_.find(agent.pid); own != started_.end()) {
    pidfd = std::move(own->second);
    started_.erase(own);
  } else {
    pidfd = OpenPidfd(agent.pid);
    // Between the look and the open the pid may have gone to somebody else.
    if (pidfd && !overcap::IsAlive(agent)) pidfd.Reset();
  }
  if (!pidfd) return Fail(ErrorCode::kNotFound, StrCat("agent process ", agent.pid, " is gone"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pidfd.Get();
  if (epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, pidfd.Get(), &event) != 0)
    return Fail(ErrnoError(errno, "epoll_ctl"));
  const int key = pidfd.Get();
  watched_[key] = Watched{std::move(pidfd), agent.pid, token};
  return {};
}

std::vector<AgentToken> PosixAgents::TakeEnded() {
  std::vector<AgentToken> ended;
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.Get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto found = watched_.find(events[static_cast<size_t>(i)].data.fd);
    helpers_.erase(events[static_cast<size_t>(i)].data.fd);
    if (found == watched_.end()) continue;
    ended.push_back(found->second.token);
    watched_.erase(found);
  }
  Reap();
  return ended;
}

// Agents, helpers, and what killed agents have left to us. Agents of an earlier engine are not our children.
void PosixAgents::Reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto trash =
        std::find_if(trash_.begin(), trash_.end(), [pid](const auto& entry) { return entry.second == pid; });
    if (trash != trash_.end()) {
      EndGroup(HelperGroup(trash->first, kTrashHelper));
      trash_.erase(trash);
    }
    const auto spare = std::find_if(spares_.begin(), spares_.end(),
                                    [pid](const auto& entry) { return entry.second.pid == pid; });
    if (spare == spares_.end()) continue;
    if (small_snapshots_.size() >= kMostSmallSnapshots) small_snapshots_.clear();
    const bool small = WIFEXITED(status) && WEXITSTATUS(status) == kSpareNotWorthIt;
    if (small) small_snapshots_.insert(spare->second.snapshot);
    EndGroup(HelperGroup(spare->first, kSpareHelper));
    spares_.erase(spare);
  }
  // Starts what was asked for while another helper was at work.
  std::erase_if(more_trash_, [this](const auto& waiting) {
    if (trash_.contains(waiting.first.first)) return false;
    EmptyTrash(waiting.second);
    return true;
  });
}

// A process that does something on the side; 0 when it could not be started.
pid_t PosixAgents::StartHelper(const SideWork& work, std::string_view kind,
                               const std::vector<std::string>& words) {
  const std::vector<std::string> all = work.owner.told() ? AsOwner(work.owner, work.area, "", words) : words;
  SpawnRequest request;
  request.program = binary_;
  request.argv = {"overcap", "agent"};
  request.argv.insert(request.argv.end(), all.begin(), all.end());
  if (!work.owner.told()) request.env = env_;
  // Its user can send it signals. What it leaves behind is ended through its group.
  if (work.owner.told())
    request.cgroup_procs = GroupFor({HelperGroup(work.owner.uid, kind), 0, "", {}}).procs;
  request.cwd = "/";
  request.stderr_fd = log_.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  auto spawned = Spawn(request);
  if (!spawned) return 0;
  // Its end wakes the loop, which reaps it and ends its group.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = spawned->pidfd.Get();
  if (spawned->pidfd && epoll_ctl(epoll_.Get(), EPOLL_CTL_ADD, event.data.fd, &event) == 0)
    helpers_[event.data.fd] = std::move(spawned->pidfd);
  return spawned->pid;
}

void PosixAgents::PrepareSpare(const SideWork& store, const std::string& snapshot) {
  Reap();
  if (spares_.contains(store.owner.uid) || small_snapshots_.contains(snapshot)) return;
  const pid_t pid = StartHelper(store, kSpareHelper, {"spare", "--store", store.folder, "--tree", snapshot});
  if (pid != 0) spares_[store.owner.uid] = {pid, snapshot};
}

void PosixAgents::EmptyTrash(const SideWork& trash) {
  if (trash_.contains(trash.owner.uid)) {
    more_trash_.insert_or_assign({trash.owner.uid, trash.folder}, trash);
    return;
  }
  std::vector<std::string> words = {"empty", trash.folder};
  if (trash.itself) words.emplace_back("--itself");
  const pid_t pid = StartHelper(trash, kTrashHelper, words);
  if (pid != 0) trash_[trash.owner.uid] = pid;
}

void PosixAgents::Signal(const ProcessIdentity& agent, int signal) {
  for (const auto& [fd, watched] : watched_) {
    if (watched.pid == agent.pid) {
      (void)SendSignal(fd, signal);
      return;
    }
  }
}

// Processes may fork while they are being killed: look again until none is left, a bounded number of times.
int PosixAgents::KillStrays(const SlotName& slot) {
  const std::string mark = StrCat("OVERCAP_AGENT=", slot.job_id, ".", slot.attempt, ".", slot.slot);
  int killed = 0;
  for (int round = 0; round < kKillRounds; ++round) {
    int alive = 0;
    for (const pid_t pid : ProcessesWithEnvironment(mark)) {
      const Fd pidfd = OpenPidfd(pid);
      // Looked at after the open: the descriptor is of this process or of none.
      if (pidfd && slot.uid >= 0 && !BelongsTo(pid, slot.uid)) continue;
      if (pidfd && SendSignal(pidfd.Get(), SIGKILL) == 0) ++alive;
    }
    if (alive == 0) break;
    killed += round == 0 ? alive : 0;
    usleep(2000);
  }
  // Its limits' group, where it had one, is still there too.
  EndGroup(GroupName(slot.job_id, slot.attempt, slot.slot));
  Reap();  // killed processes have become our children and count for their user until they are reaped
  return killed;
}

std::string PosixAgents::GpuProblem() {
  const std::string name = StrCat("overcap-probe-", getpid());
  auto group = Cgroup::Create({name, 0, "", std::vector<int>()});
  const bool limits = group && group->LimitsGpus();
  const std::string why =
      group ? "this kernel cannot restrict the devices of a control group" : group.error().message;
  EndGroup(name);
  return limits ? "" : why;
}

bool PosixAgents::RanOutOfMemory(const SlotName& slot) const {
  const auto group = Cgroup::Find(GroupName(slot.job_id, slot.attempt, slot.slot));
  return group && group->OomKills() > 0;
}

}  // namespace overcap
