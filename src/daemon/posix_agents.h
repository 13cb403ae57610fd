// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/agents.h"
#include "sys/fd.h"
#include "sys/log_bound.h"

namespace overcap {

// Agents as real processes, watched through pidfds, so that those which an earlier engine started are watched
// alike.
class PosixAgents : public Agents {
 public:
  // `binary agent ...` is started; its own complaints go to `log_path`.
  PosixAgents(std::string binary, std::string log_path, int grace_seconds);

  Result<ProcessIdentity> Start(const AgentStart& start) override;
  std::string CurrentBoot() const override;
  std::string CurrentHost() const override;
  bool IsAlive(const ProcessIdentity& agent) const override;
  int64_t RunningForUs(const ProcessIdentity& agent) const override;
  Result<void> Watch(const ProcessIdentity& agent, const AgentToken& token) override;
  void Signal(const ProcessIdentity& agent, int signal) override;
  int KillStrays(const SlotName& slot) override;
  bool RanOutOfMemory(const SlotName& slot) const override;
  void PrepareSpare(const SideWork& store, const std::string& snapshot) override;
  void EmptyTrash(const SideWork& trash) override;

  // Why jobs of told owners can open GPUs that they were not given; "": they cannot.
  static std::string GpuProblem();

  // Readable when an agent has ended; for the caller's loop.
  int EndedFd() const { return epoll_.Get(); }
  std::vector<AgentToken> TakeEnded();

 private:
  struct Watched {
    Fd pidfd;
    pid_t pid;
    AgentToken token;
  };
  std::string binary_;
  std::string log_path_;
  std::string grace_seconds_;
  std::vector<std::string> env_;
  Fd epoll_;
  Fd log_;
  LogBound log_bound_;
  std::unordered_map<int, Watched> watched_;  // by pidfd
  void Reap();
  pid_t StartHelper(const SideWork& work, std::string_view kind, const std::vector<std::string>& words);

  // Of each owner one at a time: nobody's hold up another's.
  std::map<int64_t, pid_t> trash_;
  std::map<std::pair<int64_t, std::string>, SideWork> more_trash_;  // waiting, by owner and folder
  std::map<int, Fd> helpers_;                                       // pidfds of those that run
  struct Spare {
    pid_t pid = 0;
    std::string snapshot;
  };
  std::map<int64_t, Spare> spares_;
  std::set<std::string> small_snapshots_;  // not worth a spare
  std::unordered_map<pid_t, Fd> started_;  // pidfds of Start() until Watch() takes them
};

}  // namespace overcap
