// SPDX-License-Identifier: Apache-2.0
// JudgeArray() of job_verdict.h: every task by itself, then all together.
#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/job_verdict.h"

namespace overcap {
namespace {

struct Task {
  const AttemptReport* last = nullptr;  // of its latest start
  JobState state = JobState::kUnknown;  // kUnknown: nobody knows
  Ending ending;                        // once it has ended
  int64_t ended_us = 0;
  bool begun = false;
};

class ArrayJudge {
 public:
  ArrayJudge(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us)
      : evidence_(evidence),
        sight_(sight),
        now_us_(now_us),
        tasks_(static_cast<size_t>(evidence.spec.array.Count())) {}

  Verdict Judge() {
    TakeReports();
    for (const SqueueJob* row : sight_.rows) TakeRow(*row);
    for (Task& task : tasks_) {
      if (task.state == JobState::kUnknown && task.last != nullptr && ReportLives(*task.last, now_us_))
        task.state = JobState::kRunning;
    }
    for (const SacctJob& row : sight_.accounts) TakeAccount(row);
    TakeRest();
    Count();
    Sum();
    return std::move(verdict_);
  }

 private:
  void TakeReports() {
    const auto count = tasks_.size();
    for (const AttemptReport& slot : evidence_.slots) {
      Task& task = tasks_[static_cast<size_t>(slot.slot) % count];
      if (task.last == nullptr || slot.slot > task.last->slot) task.last = &slot;
    }
    for (Task& task : tasks_) {
      if (task.last == nullptr) continue;
      task.begun = true;
      const AgentReport& report = task.last->report;
      Began(report.started_us);
      if (report.end && report.requeue.empty()) EndTask(EndOf(report), report.ended_us, &task);
    }
  }

  // The task's own line says more than the agent's.
  static Ending EndOf(const AgentReport& report) {
    const bool told = !report.tasks.empty() && report.tasks.back().ending.state != JobState::kRunning;
    return told && report.end->state != JobState::kLost ? report.tasks.back().ending : *report.end;
  }

  void EndTask(Ending ending, int64_t ended_us, Task* task) {
    task->ending = FinalEnding(CancelledEnding(evidence_, std::move(ending), ended_us));
    task->state = task->ending.state;
    task->ended_us = ended_us;
  }

  // Those at which `row` points and that have not ended by their own account.
  template <typename Row>
  std::vector<Task*> Open(const Row& row) {
    const ArraySpec& array = evidence_.spec.array;
    std::vector<Task*> open;
    const auto add = [&](int position) {
      Task* task = position < 0 ? nullptr : &tasks_[static_cast<size_t>(position)];
      if (task != nullptr && !IsFinal(task->state)) open.push_back(task);
    };
    if (row.array_task >= 0) {
      add(array.PositionOf(row.array_task));
    } else if (row.array_tasks.empty()) {
      // It has ended before all of its tasks had a row of their own.
      for (size_t i = 0; i < tasks_.size(); ++i) {
        if (!tasks_[i].begun && tasks_[i].state == JobState::kUnknown) add(static_cast<int>(i));
      }
    } else if (const auto listed = ParseArraySpec(row.array_tasks)) {
      for (int i = 0; i < listed->Count(); ++i) add(array.PositionOf(listed->IndexAt(i)));
    }
    return open;
  }

  void TakeRow(const SqueueJob& row) {
    const SlurmState state = ReadSlurmState(row.raw_state, row.raw_reason);
    if (verdict_.record.raw_state.empty() || state.state == JobState::kRunning)
      verdict_.record.raw_state = row.raw_state;
    for (Task* task : Open(row)) {
      if (state.ended) {
        if (task->last != nullptr && ReportLives(*task->last, now_us_) && now_us_ < row.end_us + kSettleUs)
          continue;
        EndTask(ReadSlurmEnding(row.raw_state, row.exit, row.raw_reason), row.end_us, task);
        continue;
      }
      task->state = state.state;
      if (state.state == JobState::kRunning) {
        task->begun = true;
        Began(row.start_us);
      } else if (task->last != nullptr && row.restarts <= task->last->slurm_restart &&
                 ReportLives(*task->last, now_us_)) {
        task->state = JobState::kRunning;
      } else {
        waits_ = state.reason;
      }
    }
  }

  void TakeAccount(const SacctJob& row) {
    if (!row.last || !ReadSlurmState(row.raw_state).ended) return;
    for (Task* task : Open(row)) {
      if (task->state != JobState::kUnknown) continue;
      if (row.start_us > 0) task->begun = true, Began(row.start_us);
      EndTask(ReadSlurmEnding(row.raw_state, row.exit, row.raw_reason), row.end_us, task);
    }
  }

  // Of which neither Slurm nor a report says anything.
  void TakeRest() {
    const bool young = IsYoung(evidence_, sight_);
    const bool open =
        !sight_.asked || !sight_.stale.empty() || sight_.accounting == SlurmSight::Accounting::kAway;
    for (Task& task : tasks_) {
      if (task.state != JobState::kUnknown) continue;
      if (young || open) {
        task.state = task.begun ? JobState::kRunning : held() ? JobState::kHeld : JobState::kQueued;
      } else if (sight_.accounting == SlurmSight::Accounting::kNotAsked) {
        verdict_.ask_accounting = true;
      } else if (task.last != nullptr && task.last->report.end) {
        EndTask(*task.last->report.end, task.last->report.ended_us, &task);
      } else if (evidence_.cancel && !task.begun) {
        EndTask({JobState::kCancelled, -1, 0, -1, evidence_.cancel->reason}, evidence_.cancel->at_us, &task);
      } else {
        EndTask({JobState::kLost, -1, 0, -1, "Slurm does not know it any more"},
                task.last != nullptr ? task.last->touched_us : evidence_.spec.submitted_us, &task);
      }
    }
  }

  bool held() const { return evidence_.hold ? evidence_.hold->held : evidence_.spec.hold; }

  void Began(int64_t at_us) {
    int64_t& started_us = verdict_.record.started_us;
    if (at_us > 0 && (started_us == 0 || at_us < started_us)) started_us = at_us;
    verdict_.record.attempt = 1;
  }

  void Count() {
    TaskCounts& counts = verdict_.record.tasks;
    counts.total = static_cast<int>(tasks_.size());
    for (const Task& task : tasks_) {
      switch (task.state) {
        case JobState::kRunning:
          ++counts.running;
          break;
        case JobState::kSucceeded:
          ++counts.succeeded;
          break;
        case JobState::kLost:
          ++counts.lost;
          break;
        case JobState::kFailed:
          ++counts.failed;
          break;
        case JobState::kCancelled:
          ++(task.begun ? counts.failed : counts.not_run);
          break;
        default:
          ++counts.queued;
      }
    }
  }

  bool Any(JobState state) const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& task) { return task.state == state; });
  }

  void Sum() {
    JobRecord& record = verdict_.record;
    const TaskCounts& counts = record.tasks;
    if (counts.running > 0 || counts.queued > 0) {
      record.state = counts.running > 0        ? JobState::kRunning
                     : Any(JobState::kQueued)  ? JobState::kQueued
                     : Any(JobState::kHeld)    ? JobState::kHeld
                     : Any(JobState::kUnknown) ? JobState::kUnknown
                                               : JobState::kQueued;
      record.reason = evidence_.cancel ? "is being cancelled" : counts.running > 0 ? "" : waits_;
      TakeHoldAct();
      return;
    }
    record.state = Any(JobState::kCancelled) && (evidence_.cancel || !Any(JobState::kFailed))
                       ? JobState::kCancelled
                   : Any(JobState::kFailed) ? JobState::kFailed
                   : Any(JobState::kLost)   ? JobState::kLost
                                            : JobState::kSucceeded;
    for (const Task& task : tasks_) record.ended_us = std::max(record.ended_us, task.ended_us);
    record.ended_us = std::max(record.ended_us, record.started_us);
    TakeFirstFailure();
  }

  void TakeHoldAct() {
    JobRecord& record = verdict_.record;
    const bool waits = record.state == JobState::kQueued || record.state == JobState::kHeld;
    if (!waits || !evidence_.hold || evidence_.hold->at_us < sight_.taken_us) return;
    record.state = evidence_.hold->held ? JobState::kHeld : JobState::kQueued;
    if (!evidence_.cancel) record.reason = evidence_.hold->held ? "held by its user" : "released just now";
  }

  void TakeFirstFailure() {
    JobRecord& record = verdict_.record;
    if (record.state == JobState::kSucceeded) {
      record.exit_status = 0;
      return;
    }
    const Task* first = nullptr;
    for (const Task& task : tasks_) {
      if (task.state == record.state && (first == nullptr || task.ended_us < first->ended_us)) first = &task;
    }
    if (first == nullptr) return;
    record.exit_status = first->ending.exit_status;
    record.signal = first->ending.signal;
    record.reason = first->ending.reason;
    if (record.state == JobState::kCancelled && evidence_.cancel && !evidence_.cancel->reason.empty())
      record.reason = evidence_.cancel->reason;
    if (record.state == JobState::kFailed && record.tasks.failed > 0)
      record.reason = StrCat(record.tasks.failed, " of ", CountOf(record.tasks.total, "task"), " failed");
  }

  const JobEvidence& evidence_;
  const SlurmSight& sight_;
  int64_t now_us_;
  std::vector<Task> tasks_;
  std::string waits_;
  Verdict verdict_;
};

}  // namespace

Verdict JudgeArray(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us) {
  return ArrayJudge(evidence, sight, now_us).Judge();
}

}  // namespace overcap
