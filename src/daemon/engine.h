// SPDX-License-Identifier: Apache-2.0
// The embedded engine without its loop: takes requests and news of agents, decides, journals, then acts.
//
// Every turn is: requests and news append records to the journal and change the table; Turn() schedules,
// makes the journal durable, and only then does what the records say (start, stop, remove, write copies into
// job folders). The caller sends its replies when Turn() says that all is committed. A kill at any point
// leaves a journal from which Open() goes on.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "daemon/agents.h"
#include "daemon/job_table.h"
#include "daemon/journal.h"
#include "daemon/live_pool_of.h"
#include "daemon/policy_queue.h"
#include "model/machine.h"
#include "model/report_tally.h"
#include "sched/scheduler.h"
#include "sys/clock.h"
#include "sys/files.h"

namespace overcap {

class Engine {
 public:
  Engine(const Clock& clock, Files& files, Agents& agents, std::string root, Machine machine);

  // Replays the journal, finds running agents again, records what ended meanwhile. Call once, before all
  // else; then Turn(). kCorrupt when the journal is damaged: nothing was changed.
  Result<void> Open();
  // Instead of Open() and all else: ends the open slots of the host of this name, which will not come back,
  // but none whose agent lives here. Reports what it did and which other hosts have open slots.
  Result<std::string> GiveUpHost(std::string_view gone);

  // From now on labs share the machine as this policy says: what runs goes on, what waits is looked at anew.
  // Before Open() only noted. kUsage when it is for another machine (`exact` false: as long as it names this
  // one); then nothing has changed.
  Result<void> SetPolicy(Policy policy, bool exact);
  const Policy* policy() const { return policy_ ? &*policy_ : nullptr; }
  // The queue as it is now, for who wants to know what would happen; the policy must be there.
  LivePoolReading LivePool() const;

  // How long an agent may live after a cancel, or after a time limit that it should have enforced.
  // `grace_us`, which it gives its ranks, is the last part of that time.
  void SetCancelPatience(int64_t us, int64_t grace_us) { cancel_patience_us_ = us, grace_us_ = grace_us; }

  // Each of these records (or refuses, changing nothing) and takes effect in the next Turn().
  Result<const Job*> Submit(const JobSpec& asked);  // again with the same id and spec: the job that is there
  Result<void> Cancel(std::string_view id, const std::string& reason);
  Result<void> Hold(const std::vector<std::string>& ids);  // all or none
  Result<void> Release(std::string_view id);
  Result<void> Remove(const std::vector<std::string>& ids);  // all or none
  // What the machine has. Taken over when nothing runs and every job that has not ended fits it: true. Else
  // the engine keeps what it has: false.
  Result<bool> Configure(const Machine& machine);

  // An agent that Watch() knew has ended.
  void AgentEnded(const AgentToken& token);

  // Schedules, commits, acts. An error means that the disk's state is unknown: end the process and start
  // anew.
  // `committed` is called when all that was asked before is durable, before the acts: the time for replies.
  Result<void> Turn(const std::function<void()>& committed = {});
  // When Turn() should be called again though nothing happened (a full disk is tried again); 0: no need.
  int64_t RetryAtUs() const { return retry_at_us_; }
  // One line for each reply: why the engine cannot write, and what helps. Empty: it can.
  std::string Problem() const;

  const JobTable& table() const { return table_; }
  const Machine& machine() const { return machine_; }
  int FreeGpus() const { return queue().FreeGpus(); }
  const Journal& journal() const { return journal_; }
  // As its user sees it. `in_detail`: with why it waits. What became of each task of an array, and its logs,
  // are in the job's folder, for whoever asks.
  JobRecord RecordOf(const Job& job, bool in_detail) const;
  // As other users may see it.
  JobRecord PublicRecordOf(const Job& job) const;
  std::string JobDir(std::string_view id) const;
  // Where the jobs and the store of an owner stand: the root, or the owner's area.
  std::string AreaOf(const JobOwner& owner) const;
  bool HasRunning() const { return table_.Count(JobState::kRunning) > JobsElsewhere(); }  // on this machine
  int JobsElsewhere() const { return static_cast<int>(elsewhere_.size()); }  // that have slots on other hosts

 private:
  enum class Readiness { kReady, kWaits, kNever };
  struct StartEffect {
    uint64_t key;
    int attempt;
    int slot;
    int64_t time_seconds = 0, memory_mb = 0;
  };
  struct SlotName {
    uint64_t key = 0;
    int attempt = 0, slot = 0;
    auto operator<=>(const SlotName&) const = default;
  };

  JobQueue& queue() { return policy_queue_ ? static_cast<JobQueue&>(*policy_queue_) : scheduler_; }
  const JobQueue& queue() const { return const_cast<Engine*>(this)->queue(); }
  Result<void> MakeQueue();
  void FillQueue();
  void AdoptSlot(const Job& job, const Slot& slot);
  void LookForCheckpoints();
  Result<void> RecordPreempt(const Preempt& preempt);
  // The warning (again), and when TERM is due.
  void RemindSlot(const Job& job, const Slot& slot);
  void StopWhatIsDue(int64_t now);
  // How long the slot may take before the engine itself ends it, long after its agent should have; 0: it has
  // no limit.
  int64_t AllowedUs(const Job& job, const Slot& slot) const;
  int64_t TimeLimitOf(const Job& job, const Slot& slot) const;
  void SetDeadline(const Job& job, const Slot& slot, int64_t used_us);
  void KillOverdue(int64_t now);

  // Journal, then table, then the copies in job folders (after the commit).
  Result<void> Record(std::vector<Event> events);
  Event MakeEvent(EventKind kind, const Job& job) const;

  void SetMachine(Machine machine);
  Result<void> RecoverJob(Job& job);
  void RecoverSlot(Job& job, const Slot& slot);
  // Replays the journal.
  struct Removal;
  Result<void> ReadJournal(std::deque<Event>* recent, std::vector<Removal>* removed);
  bool IsElsewhere(const Job& job, const Slot& slot) const;
  // Whether the agent of a slot on another host has reported its end: only that closes the slot from here.
  bool HasReportedItsEnd(const Job& job, const Slot& slot) const;
  Result<bool> ClaimForNobody(const Job& job, const Slot& slot);
  std::optional<ProcessIdentity> LiveAgent(const Job& job, const Slot& slot) const;
  // An agent whose slot's end is still to be recorded.
  struct PendingEnd {
    AgentToken token;
    int64_t seen_us = 0;  // wall: when the engine saw the end
    bool ended = false;   // false: the agent lives and could not be watched, or it is on another host
  };
  void TakeEnd(PendingEnd end);
  bool HasPendingEnd(const Job& job) const;
  // Tries again to record the ends of this job's slots; an error: they still cannot be recorded.
  Result<void> RecordPendingEnds(Job& job);
  Result<void> CheckJournalIsThere();
  void PutOrphansAside();
  void RepairCopies(const std::deque<Event>& recent);
  Result<void> CompactIfWorthIt();

  // What the report of this slot says; kQueued: never ran, kLost: no end.
  struct SlotOutcome {
    Ending ending;
    TaskResults tasks;
    int64_t ended_us = 0;  // by the agent's clock; 0: not known
  };
  // Feeds whole lines of the file to the report, from `offset` on and at most `most` bytes. Returns the
  // offset behind them.
  Result<int64_t> FeedReport(const std::string& path, int64_t offset, int64_t most,
                             ReportTally* report) const;
  // An error: nobody could look, so nothing is known.
  Result<SlotOutcome> ReadOutcome(const Job& job, const Slot& slot);
  Result<void> SlotEnded(Job& job, const PendingEnd& end);
  int64_t EndTime(const Job& job, const Slot& slot, const SlotOutcome& outcome, int64_t seen_us) const;
  // Which positions of an array have begun, as reports and the journal say.
  struct Begun {
    std::vector<bool> tasks;
    std::optional<Error> problem;  // why others may have begun too: a report could not be read to its end
  };
  Begun BegunTasks(const Job& job) const;
  // Of the positions below `until`. An error when a report cannot be read; there are none when it is a report
  // of another user.
  Result<std::vector<int>> TasksNotBegun(const Job& job, int64_t until) const;
  // Tasks of an array that no agent has reported: taken by one that was killed before it could say so.
  Result<std::vector<int>> UnreportedTasks(const Job& job) const;
  // After a power cut: tasks that may have begun without a report that has reached the disk.
  Result<std::vector<int>> PerhapsBegun(const Job& job) const;
  // The counter's first number is not synced: after a power cut it may be behind what has begun. Only while
  // no agent of the array lives.
  Result<void> RaiseTaskCounter(const Job& job, bool power_cut);
  Result<void> EndUnstarted(Job& job, const std::string& reason);
  void TryAgainLater(const Job& job);
  void WakeAt(int64_t at_us);
  void DoWhatIsDue(int64_t now);
  void Reconsider(Job& job);
  // Decides and records what becomes of a job that runs in no slot any more.
  Result<void> Settle(Job& job);
  void JobEnded(const Job& job);

  Readiness CheckReady(const Job& job, std::string* why) const;
  void EnqueueIfReady(Job& job);
  void UpdateArrayDemand(Job& job);
  int TasksLeft(const Job& job) const;
  std::string TaskCounterPath(const Job& job) const;
  // What agents have left in next-task (job-folder.md).
  struct TaskCounter {
    int64_t next = 0;
    int64_t may_have_begun = 0;
  };
  TaskCounter ReadTaskCounter(const Job& job) const;
  Result<void> StartPass();
  Result<void> RecordStart(const Start& start);

  void Act();
  void StartAgent(const StartEffect& effect);
  Result<void> WriteSpec(const JobSpec& spec);
  Result<void> CheckPlacement(JobSpec* spec);
  void WriteCopies();
  std::string AgentFile(const Job& job, int attempt, int slot, std::string_view suffix) const;
  // Who has the slot. Where jobs are others' it is not in a folder of theirs: what it says is believed.
  std::string ClaimFile(const Job& job, int attempt, int slot) const;
  TaskCounts CountTasks(const Job& job) const;
  std::pair<int64_t, ReportTally>& TaskReader(const Job& job, const Slot& slot) const;
  // All of a record but spec, reason, folder and logs.
  JobRecord ProgressOf(const Job& job) const;
  std::string WaitReason(const Job& job) const;

  const Clock& clock_;
  Files& files_;
  Agents& agents_;
  std::string root_;
  Machine machine_;
  Machine detected_;  // what holds when no configuration declares anything
  int64_t cancel_patience_us_ = 60'000'000;
  int64_t grace_us_ = 0;
  JobTable table_;
  Journal journal_;
  Scheduler scheduler_;  // without a policy
  std::optional<Policy> policy_;
  bool exact_policy_ = false;
  std::unique_ptr<PolicyQueue> policy_queue_;  // with one
  bool opened_ = false;
  int64_t looked_for_checkpoints_us_ = 0;

  std::vector<Event> uncopied_;  // recorded, not yet in their job's folder
  std::vector<StartEffect> starts_;
  std::vector<std::pair<uint64_t, int>> signals_;       // job, signal to its agents
  std::vector<std::pair<SlotName, int>> slot_signals_;  // the same to one
  struct Stop {
    int64_t at_us = 0;     // monotonic
    bool stopped = false;  // TERM was sent: next is KILL
  };
  std::map<SlotName, Stop> stops_;  // of slots that were told to go
  struct Deadline {
    int64_t at_us = 0;    // monotonic
    bool passed = false;  // TERM was sent: next is KILL
  };
  std::map<SlotName, Deadline> deadlines_;  // for slots with a time limit
  struct Removal {
    std::string id;
    JobOwner owner;
    int tries = 0;
    int64_t at_us = 0;  // monotonic
  };
  void RemoveFolders();
  bool PutAside(const Removal& removal, const SideWork& trash);
  void FindHalfRemoved(std::vector<Removal> removed);
  std::vector<Removal> removals_;         // jobs whose folders are to be removed
  std::vector<Removal> later_removals_;   // could not be removed yet
  std::vector<PendingEnd> pending_ends_;  // the disk was full
  std::optional<Error> end_problem_;      // why the last of them could not be recorded
  int64_t last_record_us_ = 0;            // the newest time in the journal, for Open()
  bool recovering_ = false;
  std::vector<std::pair<uint64_t, int64_t>> unsettled_;  // jobs to look at again, and when
  std::map<uint64_t, int64_t> cancels_;  // jobs told to stop, and when their agents are killed
  std::unordered_map<uint64_t, int> failed_starts_;
  std::unordered_map<uint64_t, std::string> start_errors_;  // why an agent could not even be started
  std::unordered_map<uint64_t, int> quick_failures_;        // in a row: each restart comes later
  std::set<uint64_t> elsewhere_;  // jobs with slots on other hosts, of which nothing is started here
  int64_t retry_at_us_ = 0;
  int64_t compact_at_ = 0;  // records
  int64_t compact_at_bytes_ = 0;
  bool stalled_ = false;  // nothing is started before retry_at_us_
  // For slots of running arrays: how far the report has been read, and what it says.
  mutable std::map<std::pair<uint64_t, int>, std::pair<int64_t, ReportTally>> task_readers_;
  mutable int64_t counted_bytes_ = 0;  // of reports that were read in this turn to count tasks
};

}  // namespace overcap
