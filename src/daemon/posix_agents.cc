// SPDX-License-Identifier: Apache-2.0
#include "daemon/posix_agents.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/process.h"

extern char** environ;

namespace overcap {
namespace {

constexpr int kKillRounds = 50;
constexpr std::chrono::milliseconds kGroupPatience{500};
constexpr int kSpareNotWorthIt = 3;  // exit status of `overcap agent spare` for a small tree
constexpr size_t kMostSmallSnapshots = 1000;

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
      log_(open(log_path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {}

Result<ProcessIdentity> PosixAgents::Start(const AgentStart& start) {
  SpawnRequest request;
  request.program = binary_;
  request.argv = {"overcap",   "agent",
                  "--job",     start.job_dir,
                  "--store",   start.store_dir,
                  "--attempt", std::to_string(start.attempt),
                  "--slot",    std::to_string(start.slot),
                  "--gpus",    JoinInts(start.gpus),
                  "--cpus",    JoinInts(start.cpus),
                  "--grace",   grace_seconds_};
  if (!start.retry_tasks.empty()) {
    request.argv.insert(request.argv.end(), {"--retry-tasks", JoinInts(start.retry_tasks)});
  }
  request.env = env_;
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

bool PosixAgents::IsAlive(const ProcessIdentity& agent) const {
  return overcap::IsAlive(agent);
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
    if (pid == trash_pid_) trash_pid_ = 0;
    if (pid != spare_pid_) continue;
    spare_pid_ = 0;
    if (small_snapshots_.size() >= kMostSmallSnapshots) small_snapshots_.clear();
    const bool small = WIFEXITED(status) && WEXITSTATUS(status) == kSpareNotWorthIt;
    if (small) small_snapshots_.insert(spare_snapshot_);
  }
}

// A process of ours that does something on the side; 0 when it could not be started.
pid_t PosixAgents::StartHelper(std::vector<std::string> words) {
  SpawnRequest request;
  request.program = binary_;
  request.argv = {"overcap", "agent"};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.env = env_;
  request.cwd = "/";
  request.stderr_fd = log_.Get();
  request.group = ProcessGroup::kSession;
  const auto spawned = Spawn(request);
  return spawned ? spawned->pid : 0;
}

void PosixAgents::PrepareSpare(const std::string& store_dir, const std::string& snapshot) {
  Reap();
  if (spare_pid_ != 0 || small_snapshots_.contains(snapshot)) return;
  spare_snapshot_ = snapshot;
  spare_pid_ = StartHelper({"spare", "--store", store_dir, "--tree", snapshot});
}

void PosixAgents::EmptyTrash(const std::string& folder) {
  Reap();
  if (trash_pid_ == 0) trash_pid_ = StartHelper({"empty", folder});
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
      if (pidfd && SendSignal(pidfd.Get(), SIGKILL) == 0) ++alive;
    }
    if (alive == 0) break;
    killed += round == 0 ? alive : 0;
    usleep(2000);
  }
  // Its limits' group, where it had one, is still there too.
  if (auto group = Cgroup::Find(StrCat("overcap-", slot.job_id, "-", slot.attempt, "-", slot.slot))) {
    (void)group->KillAll(kGroupPatience);
    (void)group->Remove(kGroupPatience);
  }
  return killed;
}

}  // namespace overcap
