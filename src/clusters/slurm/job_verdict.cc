// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_verdict.h"

#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

constexpr int64_t kUnansweredUs = 10 * kSecond;  // until a submit that died counts as never sent
constexpr int64_t kTouchUs = 45 * kSecond;       // an agent that lives gives a sign within that time

void TakeEnding(Ending ending, int64_t ended_us, JobRecord* record) {
  ending = FinalEnding(std::move(ending));
  record->state = ending.state;
  record->exit_status = ending.exit_status;
  record->signal = ending.signal;
  record->first_failed_rank = ending.first_failed_rank;
  record->reason = std::move(ending.reason);
  record->ended_us = std::max(ended_us, record->started_us);
}

void TakeReport(const AttemptReport& last, JobRecord* record) {
  record->attempt = last.attempt;
  record->restarts = std::max(0, last.attempt - 1);
  record->gpu_indices = last.gpus;
  record->started_us = last.report.started_us;
}

// The only row of a plain job, or of a second one under the same comment: the handle's.
const SqueueJob* RowOf(const JobEvidence& evidence, const SlurmSight& sight) {
  const int64_t id = evidence.handle ? evidence.handle->slurm_id : 0;
  for (const SqueueJob* row : sight.rows) {
    if (id == 0 || row->job_id == id) return row;
  }
  return nullptr;
}

const SacctJob* AccountOf(const SlurmSight& sight) {
  for (const SacctJob& row : sight.accounts) {
    if (row.last) return &row;
  }
  return nullptr;
}

class PlainJudge {
 public:
  PlainJudge(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us)
      : evidence_(evidence), sight_(sight), now_us_(now_us), row_(RowOf(evidence, sight)) {}

  Verdict Judge() {
    JobRecord& record = verdict_.record;
    if (evidence_.last.attempt > 0) TakeReport(evidence_.last, &record);
    if (row_ != nullptr) record.raw_state = row_->raw_state;
    if (!ByReport() && !ByQueue() && !ByLife() && !ByEndInQueue() && !ByAge()) WithoutQueue();
    return std::move(verdict_);
  }

 private:
  const AgentReport& report() const { return evidence_.last.report; }
  bool Requeued() const { return report().end && !report().requeue.empty(); }

  // An end that nothing follows. A preempted one may be followed by Slurm itself.
  bool ByReport() {
    if (!report().end || Requeued() || report().end->state == JobState::kPreempted) return false;
    if (MayTryAgain()) return Running();
    if (report().end->state != JobState::kSucceeded && StartedAgain()) return false;
    TakeEnding(CancelledEnding(evidence_, *report().end, report().ended_us), report().ended_us,
               &verdict_.record);
    return true;
  }

  // Slurm has done so by itself, after the start that reported.
  bool StartedAgain() const {
    return row_ != nullptr && !ReadSlurmState(row_->raw_state).ended &&
           row_->restarts > evidence_.last.slurm_restart && !evidence_.cancel;
  }

  // Its agent begins the next attempt in the same allocation, at once.
  bool MayTryAgain() const {
    if (evidence_.spec.max_restarts == 0 || report().end->state != JobState::kFailed || evidence_.cancel)
      return false;
    const bool over = row_ != nullptr && ReadSlurmState(row_->raw_state).ended;
    return !over && now_us_ - std::max(report().ended_us, evidence_.last.touched_us) < kSettleUs;
  }

  bool ByQueue() {
    if (row_ == nullptr) return false;
    const SlurmState state = ReadSlurmState(row_->raw_state, row_->raw_reason);
    if (state.ended) return false;
    JobRecord& record = verdict_.record;
    record.state = state.state;
    record.reason = state.reason;
    if (state.state == JobState::kRunning) return Running();
    // The row is older than the start, or than what a person has done since.
    const bool same_start = row_->restarts <= evidence_.last.slurm_restart;
    if (same_start && ReportLives(evidence_.last, now_us_)) {
      record.reason.clear();
      return Running();
    }
    record.started_us = 0;
    TakeWishes();
    return true;
  }

  void TakeWishes() {
    JobRecord& record = verdict_.record;
    if (evidence_.hold && evidence_.hold->at_us >= sight_.taken_us) {
      record.state = evidence_.hold->held ? JobState::kHeld : JobState::kQueued;
      record.reason = evidence_.hold->held ? "held by its user" : "released just now";
    }
    if (evidence_.cancel) record.reason = "is being cancelled";
  }

  bool Running() {
    JobRecord& record = verdict_.record;
    record.state = JobState::kRunning;
    if (record.started_us == 0 && row_ != nullptr) record.started_us = row_->start_us;
    if (evidence_.cancel) record.reason = "is being cancelled";
    return true;
  }

  // The controller has forgotten it, or takes it for ended while its agent goes on giving signs of life.
  bool ByLife() {
    if (!ReportLives(evidence_.last, now_us_)) return false;
    const int64_t touched_us = evidence_.last.touched_us;
    if (row_ != nullptr && row_->end_us > 0) {
      const bool goes_on = touched_us > row_->end_us + kTouchUs;
      const bool ends_now = now_us_ < row_->end_us + kSettleUs;
      if (!goes_on && !ends_now) return false;
    }
    return Running();
  }

  bool ByEndInQueue() {
    if (row_ == nullptr) return false;
    TakeSlurmEnd(ReadSlurmEnding(row_->raw_state, row_->exit, row_->raw_reason), row_->start_us,
                 row_->end_us);
    return true;
  }

  void TakeSlurmEnd(Ending ending, int64_t start_us, int64_t end_us) {
    JobRecord& record = verdict_.record;
    if (record.started_us == 0 && record.attempt > 0) record.started_us = start_us;
    // Asked to be started again, and was not: its own words say more than Slurm's.
    if (report().end) {
      ending = *report().end;
      if (Requeued()) ending.reason += StrCat(ending.reason.empty() ? "" : "; ", "was not started again");
    }
    end_us = std::max(end_us > 0 ? end_us : now_us_, evidence_.spec.submitted_us);
    TakeEnding(CancelledEnding(evidence_, std::move(ending), end_us), end_us, &record);
  }

  bool ByAge() {
    if (!IsYoung(evidence_, sight_)) return false;
    JobRecord& record = verdict_.record;
    const bool held = evidence_.hold ? evidence_.hold->held : evidence_.spec.hold;
    record.state = held ? JobState::kHeld : JobState::kQueued;
    if (held) record.reason = "held by its user";
    if (evidence_.cancel) record.reason = "is being cancelled";
    return true;
  }

  void WithoutQueue() {
    JobRecord& record = verdict_.record;
    // Nothing is concluded from a controller that does not answer.
    if (!sight_.asked || !sight_.stale.empty() || sight_.accounting == SlurmSight::Accounting::kAway) {
      record.state = evidence_.last.attempt > 0 ? JobState::kRunning : JobState::kQueued;
      return;
    }
    if (sight_.accounting == SlurmSight::Accounting::kNotAsked) {
      verdict_.ask_accounting = true;
      record.state = JobState::kUnknown;
      return;
    }
    const SacctJob* account = AccountOf(sight_);
    if (account != nullptr) record.raw_state = account->raw_state;
    if (account != nullptr && ReadSlurmState(account->raw_state).ended) {
      return TakeSlurmEnd(ReadSlurmEnding(account->raw_state, account->exit, account->raw_reason),
                          account->start_us, account->end_us);
    }
    if (report().end) return TakeSlurmEnd(*report().end, 0, report().ended_us);
    if (evidence_.cancel && evidence_.last.attempt == 0) {
      return TakeEnding({JobState::kCancelled, -1, 0, -1, evidence_.cancel->reason}, evidence_.cancel->at_us,
                        &record);
    }
    TakeEnding({JobState::kLost, -1, 0, -1, LostReason(account)}, LastSignUs(account), &record);
  }

  int64_t LastSignUs(const SacctJob* account) const {
    int64_t sign = std::max(evidence_.last.touched_us, report().last_us);
    if (account != nullptr) sign = std::max({sign, account->start_us, account->end_us});
    return sign > 0 ? sign : evidence_.spec.submitted_us;
  }

  std::string LostReason(const SacctJob* account) const {
    if (!evidence_.handle) return "Slurm never answered that it took the job, and does not know it";
    std::string reason = StrCat("Slurm does not know its job ", evidence_.handle->slurm_id, " any more");
    if (evidence_.last.attempt > 0) {
      const int64_t silent = now_us_ - std::max(evidence_.last.touched_us, report().last_us);
      reason += StrCat("; attempt ", evidence_.last.attempt, " ran and gave its last sign ",
                       FormatDuration(std::max<int64_t>(0, silent) / kSecond), " ago");
    } else {
      reason += "; it was never seen to start";
    }
    if (account != nullptr) reason += StrCat("; sacct last saw it ", ToUtf8(account->raw_state));
    return reason;
  }

  const JobEvidence& evidence_;
  const SlurmSight& sight_;
  int64_t now_us_;
  const SqueueJob* row_;
  Verdict verdict_;
};

std::vector<LogFile> LogsOf(const JobEvidence& evidence, int attempts) {
  std::vector<LogFile> logs;
  if (!evidence.spec.array.empty()) return logs;
  const int ranks = evidence.spec.batch ? 1 : LogsOf(evidence.spec.resources);
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    for (int rank = 0; rank < ranks; ++rank) {
      logs.push_back(
          {attempt, rank, -1, StrCat(evidence.folder, "/attempt-", attempt, "/rank-", rank, ".log")});
    }
  }
  return logs;
}

template <typename Row>
JobRecord ForeignBase(const Row& row, const std::string& cluster) {
  JobRecord record;
  const bool task = row.array_task >= 0;
  record.spec.id = task ? StrCat(row.array_job_id, "_", row.array_task) : StrCat(row.job_id);
  record.spec.user = row.user;
  record.spec.cluster = cluster;
  record.spec.name = ToUtf8(row.name);
  record.spec.submitted_us = row.submit_us;
  record.spec.placement.partitions = Split(row.partition, ',');
  record.spec.placement.account = row.account;
  record.spec.placement.qos = row.qos;
  record.raw_state = row.raw_state;
  return record;
}

}  // namespace

bool ReportBegan(const AttemptReport& report) {
  return report.attempt > 0;
}

bool ReportLives(const AttemptReport& report, int64_t now_us) {
  return ReportBegan(report) && !report.report.end &&
         now_us - std::max(report.touched_us, report.report.last_us) < kSilentUs;
}

bool IsYoung(const JobEvidence& evidence, const SlurmSight& sight) {
  if (!sight.asked) return true;
  if (evidence.handle) return std::max(evidence.handle->at_us, evidence.spec.submitted_us) >= sight.taken_us;
  return evidence.sending ||
         std::max(evidence.made_us, evidence.spec.submitted_us) + kUnansweredUs >= sight.taken_us;
}

Ending CancelledEnding(const JobEvidence& evidence, Ending ending, int64_t ended_us) {
  if (!evidence.cancel) return ending;
  // Slurm's signals reach ranks before their agent knows why, and are whole seconds by its clock.
  const bool killed = ending.signal == SIGTERM || ending.signal == SIGKILL;
  if (ending.state == JobState::kFailed && killed && ended_us + kSecond >= evidence.cancel->at_us)
    ending.state = JobState::kCancelled, ending.reason.clear();
  // Whoever cancelled it knows why; an agent without a folder in common has only seen Slurm's signal.
  if (ending.state == JobState::kCancelled && !evidence.cancel->reason.empty())
    ending.reason = evidence.cancel->reason;
  return ending;
}

Ending FinalEnding(Ending ending) {
  if (ending.state == JobState::kPreempted) {
    ending.state = JobState::kCancelled;
    if (ending.reason.empty()) ending.reason = "preempted by a job that goes first";
  }
  return ending;
}

Verdict JudgeJob(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us) {
  Verdict verdict = evidence.spec.array.empty() ? PlainJudge(evidence, sight, now_us).Judge()
                                                : JudgeArray(evidence, sight, now_us);
  JobRecord& record = verdict.record;
  record.spec = evidence.spec;
  record.dir = evidence.folder;
  if (evidence.handle) record.cluster_job = std::to_string(evidence.handle->slurm_id);
  const bool ran = record.state == JobState::kRunning || IsFinal(record.state);
  if (ran && evidence.spec.array.empty()) record.node_list = evidence.last.nodes;
  record.logs = LogsOf(evidence, record.attempt);
  return verdict;
}

namespace {

// Of jobs that were cancelled while they waited Slurm tells the end as the start.
template <typename Row>
bool NeverRan(const Row& row) {
  return row.node_list.empty() && row.start_us > 0 && row.start_us >= row.end_us;
}

}  // namespace

JobRecord ForeignRecord(const SqueueJob& row, const std::string& cluster) {
  JobRecord record = ForeignBase(row, cluster);
  const SlurmState state = ReadSlurmState(row.raw_state, row.raw_reason);
  record.state = state.state;
  record.reason = state.reason;
  record.node_list = row.node_list;
  record.restarts = row.restarts;
  record.spec.resources.gpus = row.tres.gpus;
  record.spec.resources.nodes = std::max(1, row.nodes);
  record.spec.resources.mem_bytes = row.tres.mem_bytes;
  record.spec.resources.time_seconds =
      row.time_limit_s && *row.time_limit_s < INT32_MAX ? *row.time_limit_s : 0;
  if (state.state == JobState::kRunning || (state.ended && !NeverRan(row))) {
    record.attempt = row.restarts + 1;
    record.started_us = row.start_us;
  }
  if (!row.array_tasks.empty()) {
    if (auto array = ParseArraySpec(row.array_tasks)) record.spec.array = *std::move(array);
    record.tasks.total = record.tasks.queued = record.spec.array.Count();
  }
  if (state.ended) TakeEnding(ReadSlurmEnding(row.raw_state, row.exit, row.raw_reason), row.end_us, &record);
  return record;
}

JobRecord ForeignRecord(const SacctJob& row, const std::string& cluster) {
  JobRecord record = ForeignBase(row, cluster);
  const SlurmState state = ReadSlurmState(row.raw_state);
  record.state = state.state;
  record.reason = state.reason;
  const bool ran = row.start_us > 0 && !(state.ended && NeverRan(row));
  record.attempt = ran ? row.start : 0;
  record.restarts = row.start - 1;
  record.started_us = ran ? row.start_us : 0;
  record.spec.resources.gpus = std::max(row.given.gpus, row.requested.gpus);
  record.spec.resources.nodes = std::max({1, row.given.nodes, row.requested.nodes});
  if (state.ended) TakeEnding(ReadSlurmEnding(row.raw_state, row.exit, row.raw_reason), row.end_us, &record);
  return record;
}

}  // namespace overcap
