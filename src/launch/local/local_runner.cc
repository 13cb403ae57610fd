// SPDX-License-Identifier: Apache-2.0
#include "launch/local/local_runner.h"

#include <algorithm>
#include <limits>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/local/idle_watch.h"
#include "launch/local/local_cpus.h"
#include "launch/local/node_ranks.h"
#include "launch/logs/log_sinks.h"
#include "launch/rank_threads.h"
#include "sys/devices.h"
#include "sys/free_port.h"
#include "sys/oom.h"

namespace overcap {
namespace {

// Keeps times, shows output and watches for silence while the ranks run.
class LocalRun : public GroupObserver, public GroupCompanion {
 public:
  LocalRun(const Clock& clock, Supervisor* supervisor, const Attempt& attempt, RankLogs* logs,
           AttemptEnd* end)
      : clock_(clock),
        supervisor_(*supervisor),
        attempt_(attempt),
        logs_(*logs),
        end_(*end),
        idle_(attempt.idle_us) {
    idle_.Alive(clock.MonotonicUs());
  }

  void OnStarted(const std::vector<pid_t>& pids) override {
    pids_ = pids;
    idle_.Alive(clock_.MonotonicUs());
  }
  void OnMemberEnd(int rank, const ProcessEnd& how) override {
    if (!how.ok())
      idle_.Stop();  // that one is to blame, however silent the others are while they are stopped
    if (rank < static_cast<int>(pids_.size())) pids_[rank] = 0;
    idle_.Alive(clock_.MonotonicUs());
  }
  void OnNote(const std::string& text) override { end_.notes.push_back(text); }
  void OnOutput(int, int, int64_t) override { idle_.Alive(clock_.MonotonicUs()); }

  int64_t Prepare(std::vector<pollfd>* fds) override {
    logs_.WantsToShow(fds);
    return std::min(logs_.PrepareLook(fds), idle_.DeadlineUs());
  }
  bool Interrupted() const override { return supervisor_.CancelSignal() == SIGINT; }
  bool Act(std::span<const pollfd>) override {
    const int64_t now_us = clock_.MonotonicUs();
    if (logs_.Look(now_us, clock_.WallUs()) || (idle_.Expired(now_us) && logs_.LookAtAll(clock_.WallUs())))
      idle_.Alive(now_us);
    logs_.Show();
    if (!idle_.Expired(now_us)) return false;
    idle_.Stop();
    if (supervisor_.CancelRequested()) return true;
    end_.cause = AttemptEnd::Cause::kIdle;
    if (const auto kept = KeepStacks(attempt_.log_folder, StacksOfRanks(pids_, clock_.MonotonicUs()));
        !kept) {
      end_.notes.push_back(kept.error().message);
    }
    return true;
  }

 private:
  const Clock& clock_;
  Supervisor& supervisor_;
  const Attempt& attempt_;
  RankLogs& logs_;
  AttemptEnd& end_;
  IdleWatch idle_;
  std::vector<pid_t> pids_;
};

NodeRanks RanksOf(const Attempt& attempt) {
  const PlannedHost& host = attempt.plan.hosts.front();
  NodeRanks node;
  node.ranks = host.ranks;
  node.world_size = attempt.plan.world_size;
  node.command = attempt.command;
  node.env = attempt.env;
  node.run = attempt.run;
  node.folder = attempt.folder;
  node.master_addr = "127.0.0.1";
  node.master_port = attempt.master_port != 0 ? attempt.master_port : FreePort();
  return node;
}

}  // namespace

AttemptEnd LocalRunner::Run(const Attempt& attempt, RankLogs* logs) {
  AttemptEnd end;
  NodeRanks node = RanksOf(attempt);
  auto cpus = CpusPerLocalRank(attempt.cpu_bind, node.ranks, AffinityCpus());
  if (!cpus) {
    end.cause = AttemptEnd::Cause::kCannotRun;
    end.code = cpus.error().code;
    end.message = cpus.error().message;
    return end;
  }
  node.cpus = std::move(*cpus);
  node.job_cpus = JobCpusHere(Variables(attempt.env));
  std::vector<GroupMember> members = MembersOf(node);
  if (!attempt.pipes) logs->LetRanksWrite(clock_.MonotonicUs());
  const LogSinks sinks(logs, clock_, &members);
  if (isatty(STDIN_FILENO) == 0) members[0].request.stdin_fd = STDIN_FILENO;  // a terminal stays ours
  LocalRun run(clock_, &supervisor_, attempt, logs, &end);
  const int64_t oom_kills = KernelOomKills();
  GroupLimits limits;
  limits.leave_alone = leave_alone_;
  const GroupEnd group = supervisor_.Run(&members, limits, &run, &run);
  logs->TakeBack(clock_.WallUs());
  if (end.cause == AttemptEnd::Cause::kIdle) return end;
  if (group.cause == StopCause::kCancelled) {
    end.cause = AttemptEnd::Cause::kCancelled;
    end.signal = supervisor_.CancelSignal();
  } else if (group.cause != StopCause::kNone) {
    end.cause = AttemptEnd::Cause::kRankFailed;
    RankFailure failure;
    failure.rank = group.first_failed;
    failure.host = attempt.plan.hosts.front().name;
    failure.end = group.end;
    failure.out_of_memory = group.end.signal == SIGKILL && KernelOomKills() > oom_kills;
    failure.reason = group.reason;
    end.first = failure;
  }
  return end;
}

bool LocalRunner::Pause(int64_t us) {
  supervisor_.Pause(us);
  return !supervisor_.CancelRequested();
}

int LocalRunner::CancelSignal() {
  return supervisor_.CancelRequested() ? supervisor_.CancelSignal() : 0;
}

}  // namespace overcap
