// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/agents.h"
#include "sys/fd.h"

namespace overcap {

// Agents as real processes, watched through pidfds, so that those which an earlier engine started are watched
// alike.
class PosixAgents : public Agents {
 public:
  // `binary agent ...` is started; its own complaints go to `log_path`.
  PosixAgents(std::string binary, std::string log_path, int grace_seconds);

  Result<ProcessIdentity> Start(const AgentStart& start) override;
  std::string CurrentBoot() const override;
  bool IsAlive(const ProcessIdentity& agent) const override;
  Result<void> Watch(const ProcessIdentity& agent, const AgentToken& token) override;
  void Signal(const ProcessIdentity& agent, int signal) override;
  int KillStrays(const SlotName& slot) override;
  void PrepareSpare(const std::string& store_dir, const std::string& snapshot) override;
  void EmptyTrash(const std::string& folder) override;

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
  std::unordered_map<int, Watched> watched_;  // by pidfd
  void Reap();
  pid_t StartHelper(std::vector<std::string> words);

  pid_t trash_pid_ = 0;
  pid_t spare_pid_ = 0;  // one at a time
  std::string spare_snapshot_;
  std::set<std::string> small_snapshots_;  // not worth a spare
  std::unordered_map<pid_t, Fd> started_;  // pidfds of Start() until Watch() takes them
};

}  // namespace overcap
