// SPDX-License-Identifier: Apache-2.0
// One attempt through srun or an mpiexec; nobody but its runner needs this header.
#pragma once

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <vector>

#include "launch/foreign/first_failure.h"
#include "launch/foreign/launch_contact.h"
#include "launch/foreign/launcher_process.h"
#include "launch/foreign/launcher_words.h"
#include "launch/link/channel.h"
#include "launch/link/head_signals.h"
#include "launch/link/messages.h"
#include "launch/local/idle_watch.h"
#include "launch/runner.h"
#include "net/handshake.h"
#include "net/tcp.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

class LauncherRun {
 public:
  LauncherRun(const Attempt& attempt, RankLogs* logs, const Clock& clock, Random& random,
              node_link::HeadSignals* signals);
  AttemptEnd Run();
  static AttemptEnd CannotRun(const Error& error);

 private:
  // Somebody who has connected and has not proved to know the key.
  struct Knock {
    Fd fd;
    Handshake handshake;
    int64_t since_us;
  };
  // The node process of a host. A host has a second one when ranks come after the first one's have ended.
  struct Node {
    node_link::Channel channel;
    bool said_hello = false, finished = false, gone = false;
    bool told_place = false;
    node_link::Hello hello;
    std::string host;  // as the plan calls it
    std::set<int> alive;
    int64_t gone_us = 0;
    bool Open() const { return !gone; }  // also after its last word, until it has ended
  };
  enum class RankState { kSilent, kBegun, kEnded };

  // launcher_run.cc: what comes and goes.
  Result<void> Begin();
  LaunchContact MakeContact();
  std::vector<std::string> EnvironmentOf(const LaunchContact& contact) const;
  void Turn();
  void Wait();
  void TakeSignals();
  void AskWatcher();
  void TakeKnocks();
  void TakeLauncher();
  void ServeNodes();
  void Serve(Node* node);
  bool Handle(Node* node, const std::string& frame);
  bool OnBegun(Node* node, const node_link::Begun& begun);
  bool OnOutput(Node* node, const node_link::Output& output);
  bool OnEnded(Node* node, const node_link::Ended& ended);
  bool IsOurDoing(const ProcessEnd& end) const;
  void OnHello(Node* node, const node_link::Hello& hello);
  void Gone(Node* node);
  void SendTo(Node* node, const node_link::ToNode& message);
  void SendAll(const node_link::ToNode& message);
  std::string PlanNameOf(const node_link::Hello& hello) const;

  // launcher_run_decide.cc: what is done about it.
  void Decide();
  void DecidePlace();
  void LookForFailure();
  bool FindBadHosts();
  void LookForBadHosts();
  void LookForLostNodes();
  void LookForSilence();
  void LookAtLauncher();
  void BeginStop(AttemptEnd::Cause cause, int64_t grace_us);
  void DriveStop();
  void EndLauncher(int64_t from_us);
  int64_t PatienceUs() const;
  void SweepLauncher();
  void Finish();
  void FinishWithoutLinks();
  std::vector<LauncherFinding> AllFindings() const;
  bool Done() const;
  int64_t NextUs() const;
  std::string ProgramName() const;  // of the launcher
  bool Interrupted() const { return end_.cause == AttemptEnd::Cause::kCancelled && end_.signal == SIGINT; }
  bool AllEnded() const { return ended_ == attempt_.plan.world_size; }
  bool AnyRankAlive() const;
  bool NodesGone() const;
  std::string PlanNameOf(const std::string& host) const;  // "" when the plan has no such host

  const Attempt& attempt_;
  RankLogs& logs_;
  const Clock& clock_;
  Random& random_;
  node_link::HeadSignals& signals_;
  LinkKey key_;
  LaunchContact contact_;
  TcpListener listener_;
  LauncherProcess launcher_;
  std::vector<std::unique_ptr<Knock>> knocks_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<RankState> ranks_;
  int begun_ = 0, ended_ = 0;
  FirstFailure failures_;
  IdleWatch idle_;
  std::optional<node_link::Place> place_;
  int64_t place_until_us_ = 0;  // 0: nobody waits for it
  AttemptEnd end_;
  int64_t now_us_ = 0, stop_us_ = 0, stop_until_us_ = 0, hurry_ = 0;
  int64_t all_ended_us_ = 0, launcher_ended_us_ = 0;
  int64_t stacks_until_us_ = 0;
  std::map<int, std::string> stacks_;
  std::vector<pollfd> watched_;   // of the attempt's watcher, as the last wait gave them back
  bool launcher_killed_ = false;  // its exit status is our doing
};

}  // namespace overcap
