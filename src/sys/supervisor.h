// SPDX-License-Identifier: Apache-2.0
// Runs groups of processes that live and fail together, keeps their output, and leaves nothing of them
// behind.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <poll.h>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "sys/signal_inbox.h"

namespace overcap {

class GroupRun;

// How patient the supervisor is, in microseconds.
struct SupervisorTimes {
  int64_t grace = 10'000'000;       // between TERM and KILL
  int64_t linger = 500'000;         // for left-over processes that still hold the output open
  int64_t stray_grace = 1'000'000;  // between TERM and KILL of left-over processes
  int64_t kill = 10'000'000;        // KILL is repeated so long before giving up
  int64_t drain = 1'000'000;        // for output that is still to be read after the end
  int64_t memory_poll = 200'000;
  int64_t look = 30'000'000;  // whether a member has ended, also when no signal says so
};

// Takes the output of a member instead of a file. `stream` is 1 or 2.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  virtual bool Ready() = 0;  // false: it can take no more now, the member has to wait
  virtual void Take(int stream, std::string_view bytes) = 0;
};

struct GroupMember {
  SpawnRequest request;        // its stdout and stderr are set by the supervisor
  int log_fd = -1;             // borrowed; takes both, byte for byte
  OutputSink* sink = nullptr;  // takes them instead
  int stdout_file = -1;  // borrowed, opened with O_APPEND: is its stdout, only stderr goes to log or sink
  bool split = false;    // stdout and stderr come apart: the observer is told which is which
};

// Which signals mean what to a supervisor, beside TERM and INT.
struct SupervisorSignals {
  bool hangup_cancels = false;   // HUP cancels as TERM does, unless it was ignored when we began (nohup)
  bool second_kills = false;     // QUIT, and a second INT or TERM a moment later, end the grace time
  std::vector<int> cancel = {};  // these cancel too, whatever else is said of them
};

struct GroupLimits {
  int64_t time_us = 0;                // from the start of the last member; 0: none
  std::function<bool()> over_memory;  // asked every memory_poll; true: KILL the group. May be empty
  std::function<void()> kill_more;    // called with every KILL (a cgroup's own kill). May be empty
  // True for a process that members began but that is not theirs: it and all that it started are neither
  // stopped nor waited for. Members are stopped whatever it says. May be empty.
  std::function<bool(pid_t)> leave_alone;
  bool independent = false;        // a member that fails stops nobody, and is no failure of the group
  bool companion_decides = false;  // TERM and INT do not stop the group: its companion sees them, and will
  // The warning (sys/warning.h).
  int64_t warn_us = 0;  // how long before its time limit the group is warned; 0: it is not
  // A stop always follows USR1 to the supervisor: if no process handles the warning, the group gets TERM at
  // once and has until the end of that stop's grace time.
  bool term_when_unheard = false;
  bool warn_members_only = false;  // not the processes that they have started
  bool many_nodes = false;         // launchers among the processes reach ranks on other hosts
  std::function<std::vector<pid_t>()>
      also_warned;  // further processes, which are not our descendants; may be empty
};

// Something else to wait for while a group runs: a connection, a terminal, a clock.
class GroupCompanion {
 public:
  virtual ~GroupCompanion() = default;
  // Adds what it waits for; gives when it wants to be called at the latest (monotonic, INT64_MAX: never).
  virtual int64_t Prepare(std::vector<pollfd>* fds) = 0;
  // After the wait, with its own descriptors as they came back. True: stop the group, as if it was cancelled.
  virtual bool Act(std::span<const pollfd> fds) = 0;
  // Of the stop that Act() asks for: between TERM and KILL; -1: the supervisor's own. Asked each time: 0 ends
  // a grace time that has begun.
  virtual int64_t GraceUs() const { return -1; }
  // Whether someone typed Ctrl-C: then members get INT in place of TERM.
  virtual bool Interrupted() const { return false; }
  // What members get first when they are stopped because Act() says so.
  virtual int StopSignal() const { return Interrupted() ? SIGINT : SIGTERM; }
};

enum class StopCause { kNone, kMemberFailed, kCancelled, kTimeLimit, kMemoryLimit };

struct GroupEnd {
  StopCause cause = StopCause::kNone;  // what ended the group first
  int first_failed = -1;  // the member that failed by itself before anything was stopped: of several the
                          // one that died first, by the kernel's account
  ProcessEnd end{0, 0};   // of that member, else of the first that did not end well
  std::string reason;     // why it could not be executed; else empty
  bool warned = false;    // a process of the group got the warning before the time limit
};

// Told what happens, in the order in which it happens, from inside Run().
class GroupObserver {
 public:
  virtual ~GroupObserver() = default;
  virtual void OnStarted(const std::vector<pid_t>& pids) = 0;  // every member runs its program
  virtual void OnMemberEnd(int member, const ProcessEnd& end) = 0;
  virtual void OnNote(const std::string& text) = 0;  // something the user should know
  // So many bytes went to its log; 0: it wrote what the log could not take. `stream`: 1 unless it is split.
  virtual void OnOutput(int /*member*/, int /*stream*/, int64_t /*bytes*/) {}
};

// One per process, single-threaded: it takes all signals (TERM and INT cancel, USR1 warns, USR2 asks
// to drain, HUP and PIPE are dropped) and every child of the process, adopted ones included, is its own.
class Supervisor {
 public:
  static Result<std::unique_ptr<Supervisor>> Make(const Clock& clock, SupervisorTimes times,
                                                  SupervisorSignals signals = {});

  // Starts all members and returns when nothing is left of them: every member has ended, every process they
  // left behind is gone (or was given up, with a note), and the output is in the logs. When one fails, the
  // others are stopped. Bounded: by `limits.time_us` if set, plus the times of the ladder.
  GroupEnd Run(std::vector<GroupMember>* members, const GroupLimits& limits, GroupObserver* observer,
               GroupCompanion* companion = nullptr);

  bool CancelRequested();  // TERM or INT has arrived; stays true
  int CancelSignal() const {
    return cancel_signal_;
  }  // the first that cancelled, as CancelRequested() saw it
  bool DrainRequested() const {
    return drain_;
  }  // USR2 had arrived when signals were last looked at; stays true
  // How many USR1 had arrived when signals were last looked at.
  int WarningsSeen() const { return warnings_seen_; }
  // Warns the running group, as USR1 does; false: none of its processes handles the warning, or no group
  // runs.
  bool WarnGroup();
  int SignalFd() const { return inbox_.PollFd(); }  // readable when a signal has arrived
  // Sleeps, but no longer than until TERM or INT arrives.
  void Pause(int64_t us);

 private:
  friend class GroupRun;
  Supervisor(const Clock& clock, SupervisorTimes times, SupervisorSignals signals)
      : clock_(clock), times_(times), signals_(signals) {}
  void TakeSignals();
  void Cancel(int sig);

  const Clock& clock_;
  SupervisorTimes times_;
  SupervisorSignals signals_;
  SignalInbox inbox_;
  bool urgent_ = false;  // TERM, INT or their like has come: the next one may end the grace time
  bool cancel_ = false, hurry_ = false, drain_ = false, child_ended_ = false;
  bool unseen_ = false;  // signals were taken, by whomever, and the group that runs has not looked at them
  int cancel_signal_ = 0;
  int64_t cancel_us_ = 0;
  int warnings_ = 0;  // USR1 not yet passed on
  int warnings_seen_ = 0;
  GroupRun* group_ = nullptr;  // that runs
  std::set<pid_t> given_up_;   // children that no KILL could end
};

}  // namespace overcap
