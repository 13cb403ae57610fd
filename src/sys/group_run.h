// SPDX-License-Identifier: Apache-2.0
// One Run() of the supervisor; nobody else needs this header.
#pragma once

#include <optional>
#include <vector>

#include "sys/output_pump.h"
#include "sys/pump_helper.h"
#include "sys/stop_ladder.h"
#include "sys/supervisor.h"

namespace overcap {

class GroupRun {
 public:
  GroupRun(Supervisor* supervisor, std::vector<GroupMember>* members, const GroupLimits& limits,
           GroupObserver* observer, GroupCompanion* companion);
  GroupEnd Run();
  bool Warn();  // false: no process handles it

 private:
  struct Running {
    pid_t pid = -1;                 // -1: not started, or ended
    Fd pidfd;                       // while it runs and its death is watched for
    std::vector<OutputPump> pumps;  // one, or two when it is split
    bool drop_noted = false;
  };

  void StartAll();
  Result<void> Start(GroupMember* member, Running* running);
  static Result<void> MakePumps(const GroupMember& member, Running* running);
  void WatchDeath(Running* running, Fd pidfd);
  void StartFailed(int index, const Error& error);

  void Decide();  // what the clock, the limits and the signals ask for
  void CheckMemory();
  void BeginStop(StopCause cause, int64_t grace_us);
  void SweepStrays();
  void Climb();
  void GiveUp();
  void SignalAll(int sig);
  void Stop();
  void TakeWarning();

  void Wait();
  int64_t NextDeadline() const;
  void Reap();
  void ReapDeathsInOrder();
  void ReapOne(pid_t pid);
  bool IsWatched(pid_t pid) const;
  void MemberEnded(pid_t pid, const ProcessEnd& end);
  std::vector<pid_t> Stoppable(std::vector<pid_t> pids) const;  // without what is to be left alone
  bool NothingToStop() const;

  void AskCompanion(std::span<const pollfd> fds);
  struct PumpTurn {
    size_t member, stream;
    int64_t moved = 0, dropped = 0;  // before it
  };
  OutputPump& PumpOf(const PumpTurn& turn) { return running_[turn.member].pumps[turn.stream]; }
  void PumpReady(const std::vector<PumpTurn>& ready);
  static bool WritesMuch(const Running& member);
  PumpTurn BeforePump(size_t index, size_t stream) const;
  void AfterPump(const PumpTurn& turn);
  void PumpOne(size_t index, size_t stream);
  bool PumpAll(size_t index);
  bool WaitForSink(size_t index, int64_t deadline);
  void DrainAll();
  bool OutputEnded() const;

  Supervisor& super_;
  std::vector<GroupMember>& members_;
  const GroupLimits& limits_;
  GroupObserver& observer_;
  GroupCompanion* companion_;

  std::vector<Running> running_;
  PumpHelper helper_;
  Fd deaths_;  // an epoll of the pidfds, for groups of several: it tells who died in the order of the deaths
  std::vector<pid_t> pids_;
  int alive_ = 0;
  bool children_left_ = false;
  bool gave_up_ = false;
  int64_t now_us_ = 0;
  int64_t time_limit_us_ = 0;   // 0: none
  int64_t warn_at_us_ = 0;      // when the group is warned; 0: never, or it has been
  int64_t memory_next_us_ = 0;  // 0: not watched
  int64_t linger_until_us_ = 0;
  std::optional<StopLadder> ladder_;
  bool early_ = false;  // TERM was sent in place of the warning; the stop that follows sets the time of KILL
  GroupEnd end_;
};

}  // namespace overcap
