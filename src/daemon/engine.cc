// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "daemon/after_attempt.h"
#include "model/fits.h"

namespace overcap {
namespace {

constexpr int64_t kRetryAfterUs = 1'000'000;
constexpr int kMostDoublings = 6;                  // of that time: about a minute
constexpr std::ptrdiff_t kMostRetryTasks = 5'000;  // they stand on a command line

// Ended without having done anything: its agent never began, or an array's was killed before its first task.
bool MadeNoProgress(const Job& job, const Event& slot_ended) {
  if (slot_ended.ending.state == JobState::kQueued) return true;
  return job.is_array() && slot_ended.ending.state == JobState::kLost && slot_ended.tasks == TaskResults{};
}

TaskResults ResultsOf(const AgentReport& report) {
  TaskResults results;
  for (const TaskResult& task : report.tasks) {
    if (task.ending.state == JobState::kSucceeded) {
      ++results.succeeded;
    } else if (task.ending.state == JobState::kRunning) {
      results.lost.push_back(task.task);
    } else {
      results.failed.emplace_back(task.task, task.ending.exit_status);
    }
  }
  return results;
}

}  // namespace

Engine::Engine(const Clock& clock, Files& files, Agents& agents, std::string root, Machine machine)
    : clock_(clock),
      files_(files),
      agents_(agents),
      root_(std::move(root)),
      machine_(std::move(machine)),
      detected_(machine_),
      journal_(files, root_ + "/journal") {
  scheduler_.SetNodes({machine_});
}

Event Engine::MakeEvent(EventKind kind, const Job& job) const {
  Event event;
  event.kind = kind;
  event.time_us = clock_.WallUs();
  event.id = job.spec.id;
  return event;
}

Result<void> Engine::Record(std::vector<Event> events) {
  OC_TRY_VOID(journal_.Append(events));
  for (Event& event : events) {
    OC_TRY_VOID(table_.Apply(event));
    uncopied_.push_back(std::move(event));
  }
  return {};
}

// ---- requests ----

Result<const Job*> Engine::Submit(const JobSpec& spec) {
  if (const Job* job = table_.Find(spec.id); job != nullptr) {
    if (job->spec == spec) return job;
    return Fail(ErrorCode::kConflict, StrCat("job '", spec.id, "' exists already and is another one"));
  }
  OC_TRY_VOID(ValidateSpec(spec));
  OC_TRY_VOID(CheckFits(spec.resources, machine_));
  for (const Dependency& dependency : spec.after) {
    if (table_.Find(dependency.job_id) != nullptr) continue;
    return Fail(ErrorCode::kNotFound, StrCat("no job '", dependency.job_id, "' to wait for"),
                "overcap ls shows the ids");
  }
  if (!spec.replaces.empty() && table_.Find(spec.replaces) == nullptr) {
    return Fail(ErrorCode::kNotFound, StrCat("no job '", spec.replaces, "' to replace"),
                "overcap ls shows the ids");
  }
  Event event;
  event.kind = EventKind::kSubmitted;
  event.time_us = clock_.WallUs();
  event.id = spec.id;
  event.spec = spec;
  // The folder first: a job that has no place to write is refused now, not found out later.
  OC_TRY_VOID(WriteSpec(spec));
  if (auto recorded = Record({event}); !recorded) {
    (void)files_.RemoveTree(JobDir(spec.id));
    return Fail(recorded.error());
  }
  Job* job = table_.Find(spec.id);
  job->spec_written = true;
  EnqueueIfReady(*job);
  // Should this fail (full disk) the old job goes on and the new one waits for it; a restart asks again.
  if (!spec.replaces.empty()) (void)Cancel(spec.replaces, StrCat("replaced by ", spec.id));
  return job;
}

Result<void> Engine::Cancel(std::string_view id, const std::string& reason) {
  Job* job = table_.Find(id);
  if (job == nullptr) return Fail(ErrorCode::kNotFound, StrCat("no job '", id, "'"));
  if (job->ended() || job->progress.cancel_requested) return {};
  if (job->slots.empty()) return EndUnstarted(*job, reason);
  Event cancel = MakeEvent(EventKind::kCancel, *job);
  cancel.reason = reason;
  OC_TRY_VOID(Record({cancel}));
  scheduler_.Remove(job->key);
  signals_.emplace_back(job->key, SIGTERM);
  // The agent has its own ladder for the ranks; an agent that hangs itself is killed.
  const int64_t patience_ends = clock_.MonotonicUs() + cancel_patience_us_;
  cancels_[job->key] = patience_ends;
  WakeAt(patience_ends);
  return {};
}

Result<void> Engine::EndUnstarted(Job& job, const std::string& reason) {
  Event ended = MakeEvent(EventKind::kEnded, job);
  ended.ending.state = JobState::kCancelled;
  ended.ending.reason = reason;
  OC_TRY_VOID(Record({ended}));
  JobEnded(job);
  return {};
}

Result<void> Engine::Hold(const std::vector<std::string>& ids) {
  std::vector<Job*> jobs;
  for (const std::string& id : ids) {
    Job* job = table_.Find(id);
    if (job == nullptr) return Fail(ErrorCode::kNotFound, StrCat("no job '", id, "'"));
    if (job->state != JobState::kQueued && job->state != JobState::kHeld) {
      return Fail(ErrorCode::kConflict,
                  StrCat("job '", id, "' is ", JobStateName(job->state), ": only queued jobs can be held"),
                  job->ended() ? "" : StrCat("overcap abort ", id, " stops it"));
    }
    jobs.push_back(job);
  }
  for (Job* job : jobs) {
    if (job->state == JobState::kHeld) continue;
    OC_TRY_VOID(Record({MakeEvent(EventKind::kHeld, *job)}));
    scheduler_.Remove(job->key);
  }
  return {};
}

Result<void> Engine::Release(std::string_view id) {
  Job* job = table_.Find(id);
  if (job == nullptr) return Fail(ErrorCode::kNotFound, StrCat("no job '", id, "'"));
  if (job->state != JobState::kHeld) return {};
  OC_TRY_VOID(Record({MakeEvent(EventKind::kReleased, *job)}));
  EnqueueIfReady(*job);
  return {};
}

Result<void> Engine::Remove(const std::vector<std::string>& ids) {
  std::vector<Event> events;
  std::set<std::string_view> seen;
  for (const std::string& id : ids) {
    const Job* job = table_.Find(id);
    if (job == nullptr) return Fail(ErrorCode::kNotFound, StrCat("no job '", id, "'"));
    if (!job->ended()) {
      return Fail(ErrorCode::kConflict, StrCat("job '", id, "' is ", JobStateName(job->state), ", not ended"),
                  StrCat("overcap abort ", id, " stops it"));
    }
    if (const auto waiting = table_.Dependents(id); !waiting.empty()) {
      return Fail(ErrorCode::kConflict, StrCat("job '", waiting[0]->spec.id, "' still depends on '", id, "'"),
                  StrCat("overcap abort ", waiting[0]->spec.id, " if it shall not run"));
    }
    if (seen.insert(id).second) events.push_back(MakeEvent(EventKind::kRemoved, *job));
  }
  auto recorded = Record(events);
  if (!recorded && recorded.error().code == ErrorCode::kUnavailable) {
    // A full disk, and this is how its user makes room: the folders go first.
    for (const std::string& id : ids) (void)files_.RemoveTree(JobDir(id));
    recorded = Record(events);
  }
  OC_TRY_VOID(std::move(recorded));
  for (const std::string& id : ids) removals_.push_back(id);
  return {};
}

Result<bool> Engine::Configure(const Machine& machine) {
  if (machine == machine_ || HasRunning()) return false;
  for (const auto& [key, job] : table_.jobs()) {
    if (!job->ended() && !CheckFits(job->spec.resources, machine)) return false;
  }
  Event event;
  event.kind = EventKind::kMachine;
  event.time_us = clock_.WallUs();
  event.machine = machine;
  OC_TRY_VOID(journal_.Append({event}));
  SetMachine(machine);
  return true;
}

void Engine::SetMachine(Machine machine) {
  machine_ = std::move(machine);
  scheduler_.SetNodes({machine_});
}

// ---- readiness and the queue ----

Engine::Readiness Engine::CheckReady(const Job& job, std::string* why) const {
  if (!job.spec.replaces.empty()) {
    const Job* old = table_.Find(job.spec.replaces);
    if (old != nullptr && !old->ended()) {
      *why = StrCat("waits until '", old->spec.id, "' has stopped");
      return Readiness::kWaits;
    }
  }
  for (const Dependency& dependency : job.spec.after) {
    const Job* other = table_.Find(dependency.job_id);
    if (other == nullptr) continue;  // removed, so it had ended, and this job was looked at then
    if (!other->ended()) {
      *why = StrCat("waits for '", dependency.job_id, "' to ", dependency.any_end ? "end" : "succeed");
      return Readiness::kWaits;
    }
    if (!dependency.any_end && other->state != JobState::kSucceeded) {
      *why = StrCat("'", dependency.job_id, "', which it waited for, has ", JobStateName(other->state));
      return Readiness::kNever;
    }
  }
  return Readiness::kReady;
}

void Engine::EnqueueIfReady(Job& job) {
  if (job.state != JobState::kQueued || job.progress.cancel_requested) return;
  std::string why;
  switch (CheckReady(job, &why)) {
    case Readiness::kWaits:
      return;
    case Readiness::kNever:
      if (!EndUnstarted(job, why)) TryAgainLater(job);
      return;
    case Readiness::kReady:
      break;
  }
  QueuedJob queued;
  queued.key = job.key;
  queued.seq = job.key;
  queued.priority = job.spec.priority;
  queued.resources = job.spec.resources;
  if (job.is_array()) {
    const int left = TasksLeft(job);
    queued.slots_wanted = std::max(1, job.spec.array.limit > 0 ? std::min(left, job.spec.array.limit) : left);
    queued.first_slot = job.progress.next_slot;
    queued.resources.time_seconds = 0;  // the limit is a task's, not the lane's
  }
  scheduler_.Enqueue(queued);
}

std::string Engine::TaskCounterPath(const Job& job) const {
  return JobDir(job.spec.id) + "/attempt-1/next-task";
}

int64_t Engine::ReadTaskCounter(const Job& job) const {
  auto bytes = files_.ReadRange(TaskCounterPath(job), 0, 8);
  int64_t next = 0;
  if (!bytes || bytes->size() != 8) return 0;
  for (int i = 7; i >= 0; --i)
    next = (next << 8) | static_cast<unsigned char>((*bytes)[static_cast<size_t>(i)]);
  return next;
}

int Engine::TasksLeft(const Job& job) const {
  const int64_t left = job.spec.array.Count() - ReadTaskCounter(job);
  return static_cast<int>(std::max<int64_t>(0, left)) + (job.array->retry.empty() ? 0 : 1);
}

// How many more lanes a running array may take.
void Engine::UpdateArrayDemand(Job& job) {
  if (!job.is_array() || job.state != JobState::kRunning || job.progress.cancel_requested) return;
  const bool no_more = job.array->broken || (job.array->drained && job.array->retry.empty());
  int wanted = no_more ? 0 : TasksLeft(job);
  if (job.spec.array.limit > 0)
    wanted = std::min(wanted, job.spec.array.limit - static_cast<int>(job.slots.size()));
  scheduler_.UpdateSlots(job.key, std::max(0, wanted));
}

void Engine::JobEnded(const Job& job) {
  scheduler_.Remove(job.key);
  failed_starts_.erase(job.key);
  for (Job* dependent : table_.Dependents(job.spec.id)) EnqueueIfReady(*dependent);
}

// ---- agents ----

std::string Engine::AgentFile(const Job& job, int attempt, int slot, std::string_view suffix) const {
  return StrCat(JobDir(job.spec.id), "/attempt-", attempt, "/agent-", slot, suffix);
}

// Takes the slot's claim so that no agent can come late; false when somebody has it. An error says nothing
// about it.
Result<bool> Engine::ClaimForNobody(const Job& job, const Slot& slot) {
  OC_TRY_VOID(files_.MakeFolders(StrCat(JobDir(job.spec.id), "/attempt-", slot.attempt)));
  auto made = files_.CreateExclusive(AgentFile(job, slot.attempt, slot.slot, ".claim"),
                                     ClaimToJson({0, 0, "", "daemon"}) + "\n");
  if (made) return true;
  if (made.error().code == ErrorCode::kConflict) return false;
  return Fail(made.error());
}

std::optional<ProcessIdentity> Engine::LiveAgent(const Job& job, const Slot& slot) const {
  const auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim"));
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  if (!claim || claim->by != "agent") return std::nullopt;
  ProcessIdentity agent{static_cast<pid_t>(claim->pid), static_cast<uint64_t>(claim->start_ticks),
                        claim->boot_id};
  if (!agents_.IsAlive(agent)) return std::nullopt;
  return agent;
}

Result<Engine::SlotOutcome> Engine::ReadOutcome(const Job& job, const Slot& slot) {
  SlotOutcome outcome;
  // A claim that a power cut took away proves nothing: only in the same boot does no claim mean that nothing
  // ran.
  const bool same_boot = slot.boot_id == agents_.CurrentBoot();
  OC_TRY(ours, ClaimForNobody(job, slot));
  OC_TRY(text_of_claim, files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim")));
  const auto claim = ClaimFromJson(text_of_claim);  // unreadable after a power cut: it was somebody's
  if (same_boot && (ours || (claim && claim->by == "daemon"))) {
    outcome.tasks.lost = slot.retry_tasks;
    outcome.ending.state = JobState::kQueued;
    outcome.ending.reason = StrCat("its agent ended before it began; see ", root_, "/daemon.log");
    return outcome;
  }
  auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".jsonl"));
  if (!text && text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  const AgentReport report = ParseAgentReport(text ? *text : "");
  outcome.tasks = ResultsOf(report);
  for (const int task : slot.retry_tasks) {
    const auto same = [task](const TaskResult& result) { return result.task == task; };
    if (std::none_of(report.tasks.begin(), report.tasks.end(), same)) outcome.tasks.lost.push_back(task);
  }
  if (report.end) {
    outcome.ending = *report.end;
    outcome.ended_us = report.ended_us;
    return outcome;
  }
  outcome.ending.state = JobState::kLost;
  outcome.ending.reason = "its agent was killed or the machine went down";
  agents_.KillStrays({job.spec.id, slot.attempt, slot.slot});
  return outcome;
}

void Engine::AgentEnded(const AgentToken& token) {
  Job* job = table_.FindKey(token.job_key);
  Slot* slot = job == nullptr ? nullptr : job->FindSlot(token.attempt, token.slot);
  if (slot == nullptr) return;
  // Nobody but a dead agent gives its slot back: one that lives and could not be watched is looked at again.
  if (auto agent = LiveAgent(*job, *slot)) {
    slot->agent = *agent;
    if (agents_.Watch(*agent, token)) return;
  } else if (SlotEnded(*job, token.attempt, token.slot)) {
    return;
  }
  unrecorded_ends_.push_back(token);
  WakeAt(clock_.MonotonicUs() + kRetryAfterUs);
}

Result<void> Engine::SlotEnded(Job& job, int attempt, int slot_number) {
  const Slot slot = *job.FindSlot(attempt, slot_number);
  OC_TRY(outcome, ReadOutcome(job, slot));
  Event event = MakeEvent(EventKind::kSlotEnded, job);
  event.attempt = attempt;
  event.slot = slot_number;
  event.ending = outcome.ending;
  event.tasks = std::move(outcome.tasks);
  // When it ended, not when we learnt of it; a clock that was set may not give a time before its start.
  if (outcome.ended_us > slot.started_us) event.time_us = std::min(event.time_us, outcome.ended_us);
  OC_TRY_VOID(Record({event}));
  scheduler_.Release(job.key, slot_number);
  task_readers_.erase({job.key, slot_number});
  if (MadeNoProgress(job, event)) {
    ++failed_starts_[job.key];
  } else {
    failed_starts_.erase(job.key);
  }
  if (!Settle(job)) TryAgainLater(job);
  return {};
}

// Again in a second, then ever later: what could not be done now will hardly be done at once.
void Engine::TryAgainLater(const Job& job) {
  const auto failed = failed_starts_.find(job.key);
  const int doublings = failed == failed_starts_.end() ? 0 : std::min(failed->second, kMostDoublings);
  const int64_t at = clock_.MonotonicUs() + (kRetryAfterUs << doublings);
  unsettled_.emplace_back(job.key, at);
  WakeAt(at);
}

void Engine::WakeAt(int64_t at_us) {
  retry_at_us_ = retry_at_us_ == 0 ? at_us : std::min(retry_at_us_, at_us);
}

// A job whose next step is due: it runs nowhere any more, or it is queued and must be looked at.
void Engine::Reconsider(Job& job) {
  if (job.state == JobState::kRunning && job.slots.empty()) {
    if (!Settle(job)) TryAgainLater(job);
  } else if (job.state == JobState::kQueued) {
    EnqueueIfReady(job);
  }
}

std::vector<bool> Engine::ReportedTasks(const Job& job) const {
  std::vector<bool> reported(static_cast<size_t>(job.spec.array.Count()));
  for (int slot = 0; slot < job.progress.next_slot; ++slot) {
    auto text = files_.Read(AgentFile(job, 1, slot, ".jsonl"));
    if (!text) continue;
    for (const TaskResult& task : ParseAgentReport(*text).tasks) {
      const int position = job.spec.array.PositionOf(task.task);
      if (position >= 0) reported[static_cast<size_t>(position)] = true;
    }
  }
  return reported;
}

std::vector<int> Engine::UnreportedTasks(const Job& job) const {
  const TaskResults& done = job.array->done;
  const int total = job.spec.array.Count();
  if (done.succeeded + static_cast<int>(done.failed.size() + done.lost.size()) >= total) return {};
  const std::vector<bool> reported = ReportedTasks(job);
  std::vector<int> unreported;
  for (int position = 0; position < total; ++position) {
    if (!reported[static_cast<size_t>(position)]) unreported.push_back(job.spec.array.IndexAt(position));
  }
  return unreported;
}

Result<void> Engine::Settle(Job& job) {
  if (job.array && job.array->drained && job.slots.empty() && job.array->retry.empty()) {
    job.array->retry = UnreportedTasks(job);
  }
  const auto failed = failed_starts_.find(job.key);
  const AfterAttempt next =
      DecideAfterAttempt(job, job.last_attempt, failed == failed_starts_.end() ? 0 : failed->second);
  if (next.step == NextStep::kGoOn) {
    UpdateArrayDemand(job);
    return {};
  }
  Event after = MakeEvent(next.step == NextStep::kEnd ? EventKind::kEnded : EventKind::kRequeued, job);
  after.ending = next.ending;
  after.reason = next.reason;
  if (next.step == NextStep::kEnd && job.last_attempt_us > 0) after.time_us = job.last_attempt_us;
  OC_TRY_VOID(Record({after}));
  if (next.step == NextStep::kEnd) {
    JobEnded(job);
  } else {
    scheduler_.Remove(job.key);
    if (failed_starts_.contains(job.key)) {
      TryAgainLater(job);
    } else {
      EnqueueIfReady(job);
    }
  }
  return {};
}

// ---- a turn ----

Result<void> Engine::RecordStart(const Start& start) {
  Job& job = *table_.FindKey(start.key);
  Event event = MakeEvent(EventKind::kStarted, job);
  event.attempt = job.is_array() ? 1 : job.progress.attempt + 1;
  event.slot = start.slot;
  event.gpus = start.allocation.gpus;
  event.cpus = start.allocation.cpus;
  event.boot_id = agents_.CurrentBoot();
  if (job.array) {
    const auto& retry = job.array->retry;
    event.retry_tasks.assign(retry.begin(),
                             retry.begin() + std::min<std::ptrdiff_t>(std::ssize(retry), kMostRetryTasks));
  }
  OC_TRY_VOID(Record({event}));
  starts_.push_back({job.key, event.attempt, event.slot});
  UpdateArrayDemand(job);
  return {};
}

Result<void> Engine::StartPass() {
  const std::vector<Start> starts = scheduler_.Pass(clock_.WallUs());
  for (size_t i = 0; i < starts.size(); ++i) {
    auto recorded = RecordStart(starts[i]);
    if (recorded) continue;
    for (size_t undone = i; undone < starts.size(); ++undone) scheduler_.Undo(starts[undone]);
    return recorded;
  }
  return {};
}

void Engine::DoWhatIsDue(int64_t now) {
  if (retry_at_us_ == 0 || now < retry_at_us_) return;
  retry_at_us_ = 0;
  stalled_ = false;
  for (const AgentToken& token : std::exchange(unrecorded_ends_, {})) AgentEnded(token);
  for (const auto& [key, at] : std::exchange(unsettled_, {})) {
    Job* job = table_.FindKey(key);
    if (job == nullptr) continue;
    if (at <= now) {
      Reconsider(*job);
    } else {
      unsettled_.emplace_back(key, at);
      WakeAt(at);
    }
  }
  for (auto it = cancels_.begin(); it != cancels_.end();) {
    const Job* job = table_.FindKey(it->first);
    const bool over = job == nullptr || job->ended();
    if (!over && it->second <= now) signals_.emplace_back(it->first, SIGKILL);
    if (!over && it->second > now) WakeAt(it->second);
    it = over || it->second <= now ? cancels_.erase(it) : std::next(it);
  }
}

Result<void> Engine::Turn(const std::function<void()>& committed) {
  const int64_t now = clock_.MonotonicUs();
  DoWhatIsDue(now);
  // Acting may bring news (an agent that ended at once): they are recorded, so there is more to commit and to
  // do.
  bool first = true;
  do {
    // A full disk: what could not be recorded is not started; it is tried again later.
    if (!stalled_ && !StartPass()) {
      stalled_ = true;
      WakeAt(now + kRetryAfterUs);
    }
    OC_TRY_VOID(journal_.Commit());
    if (first && committed) committed();
    first = false;
    Act();
  } while (journal_.dirty());
  return CompactIfWorthIt();
}

void Engine::Act() {
  for (const StartEffect& effect : std::exchange(starts_, {})) StartAgent(effect);
  WriteCopies();
  for (const auto& [key, signal] : std::exchange(signals_, {})) {
    Job* job = table_.FindKey(key);
    if (job == nullptr) continue;
    for (const Slot& slot : job->slots) {
      if (slot.agent) agents_.Signal(*slot.agent, signal);
    }
  }
  if (removals_.empty()) return;
  // Removing many files takes long: they are put aside here and removed by another process.
  const std::string trash = root_ + "/trash";
  (void)files_.MakeFolders(trash);
  for (const std::string& id : std::exchange(removals_, {})) {
    if (!files_.Rename(JobDir(id), StrCat(trash, "/", id))) (void)files_.RemoveTree(JobDir(id));
  }
  agents_.EmptyTrash(trash);
}

void Engine::StartAgent(const StartEffect& effect) {
  Job* job = table_.FindKey(effect.key);
  Slot* slot = job == nullptr ? nullptr : job->FindSlot(effect.attempt, effect.slot);
  if (slot == nullptr) return;
  AgentStart start{job->spec.id, JobDir(job->spec.id), root_ + "/store", effect.attempt,
                   effect.slot,  slot->gpus,           slot->cpus,       slot->retry_tasks};
  const AgentToken token{effect.key, effect.attempt, effect.slot};
  const std::string start_spare = job->spec.snapshot;  // AgentEnded() may end the job
  job->spec_written = job->spec_written || WriteSpec(job->spec);
  const bool ready =
      job->spec_written && files_.MakeFolders(StrCat(start.job_dir, "/attempt-", start.attempt));
  if (!ready) return AgentEnded(token);  // never ran: tried again, ever later
  auto agent = agents_.Start(start);
  if (agent) slot->agent = *agent;
  if (!agent || !agents_.Watch(*agent, token)) AgentEnded(token);
  if (!start_spare.empty()) agents_.PrepareSpare(root_ + "/store", start_spare);
}

// An agent reads it; written again by each engine, since a power cut may have taken it.
Result<void> Engine::WriteSpec(const JobSpec& spec) {
  const std::string dir = JobDir(spec.id);
  OC_TRY_VOID(files_.MakeFolders(dir));
  return files_.WriteAtomic(dir + "/spec.json", SpecToJson(spec) + "\n", false);
}

// Copies of what was recorded, for people and for the agents; the journal is the truth.
void Engine::WriteCopies() {
  std::vector<std::pair<std::string, std::string>> lines;  // job, text; a job's events mostly stand together
  for (const Event& event : std::exchange(uncopied_, {})) {
    if (table_.Find(event.id) == nullptr) continue;  // removed
    if (lines.empty() || lines.back().first != event.id) lines.emplace_back(event.id, "");
    lines.back().second += EventToJson(event, false) + "\n";
  }
  for (const auto& [id, text] : lines) {
    if (auto log = files_.OpenAppend(JobDir(id) + "/events.jsonl")) (void)(*log)->Append(text);
  }
}

}  // namespace overcap
