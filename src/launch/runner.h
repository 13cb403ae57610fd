// SPDX-License-Identifier: Apache-2.0
// Starts all ranks once and sees them to their end: by itself, over ssh, or through srun or an mpiexec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/compose/launch_command.h"
#include "launch/logs/rank_logs.h"
#include "launch/rank_plan.h"
#include "launch/torch_run.h"
#include "sys/process.h"
#include "sys/supervisor.h"

namespace overcap {

// Looks after an attempt while it runs, and is told what happens; called from inside Run() only. What Act()
// says counts as a signal to stop (kCancelled, signal 0).
class AttemptWatcher : public GroupCompanion {
 public:
  virtual void OnAllBegun() = 0;  // every rank runs
  virtual void OnRankEnd(int rank, const ProcessEnd& end) = 0;
  virtual void OnSignal(int signal) = 0;  // of this process: INT, TERM, HUP or USR1
};

struct Attempt {
  RankPlan plan;
  std::vector<std::string> command;  // what every rank runs
  std::vector<std::string>
      env;                 // the caller's whole environment; the runner sets the ranks' own variables over it
  std::string folder;      // where the ranks start
  std::string log_folder;  // of this attempt; exists
  LaunchCommand launch;    // for srun and mpiexec
  std::string cpu_bind;    // local and ssh: processors of each rank; "": not bound
  std::vector<std::string> ssh_options;  // words between `ssh` and the host
  std::string ssh_program = "ssh";
  std::string binary;                 // this program's own file
  int master_port = 0;                // 0: a free one is found on the first host
  TorchRun run;                       // what the ranks have in common
  int64_t grace_us = 10'000'000;      // between TERM and KILL
  int64_t idle_us = 0;                // no output of any rank for so long: stacks, stop; 0: no limit
  bool pipes = false;                 // local: ranks do not write their logs themselves
  AttemptWatcher* watcher = nullptr;  // through srun and mpiexec only
  bool patient = false;               // a second signal to stop does not end the grace time; as above
  int64_t connect_us = 10'000'000;    // a host that does not answer in that time has failed
};

// One rank that failed.
struct RankFailure {
  int rank = -1;
  std::string host;
  ProcessEnd end{-1, 0};
  bool end_known = true;  // false: it is gone, and nobody told its exit status
  bool out_of_memory = false;
  std::string reason = {};   // why it could not be started; else ""
  std::string message = {};  // what the rank itself told of it; may be ""
};

struct AttemptEnd {
  enum class Cause {
    kDone,        // every rank ended with status 0
    kRankFailed,  // `first` says which and how
    kHostFailed,  // `bad_hosts` did not answer, or their connection broke
    kIdle,        // no output for idle_us; stacks are in log_folder/stacks.txt
    kCancelled,   // by `signal`
    kCannotRun,   // `message`; nothing of it was the ranks' doing
  };
  Cause cause = Cause::kDone;
  std::optional<RankFailure> first;    // the rank that failed first
  std::vector<std::string> bad_hosts;  // names of the plan
  int signal = 0;
  std::string message;                    // one line for people; may be empty
  ErrorCode code = ErrorCode::kInternal;  // of kCannotRun and kHostFailed
  std::vector<std::string> notes;         // what the user should know beside that, one line each
};

class Runner {
 public:
  virtual ~Runner() = default;
  // Blocks until nothing of the attempt is left on any host that can be reached. All output is in `logs`.
  virtual AttemptEnd Run(const Attempt& attempt, RankLogs* logs) = 0;
  // Waits between attempts; false at once when a signal said to stop (CancelSignal() tells which).
  virtual bool Pause(int64_t us) = 0;
  virtual int CancelSignal() = 0;  // that has arrived by now; 0: none
};

}  // namespace overcap
