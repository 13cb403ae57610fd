// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "daemon/after_attempt.h"

namespace overcap {
namespace {

constexpr int64_t kRetryAfterUs = 1'000'000;
constexpr int64_t kSoonestWakeUs = 20'000;
constexpr int kMostDoublings = 6;                  // of that time: about a minute
constexpr std::ptrdiff_t kMostRetryTasks = 5'000;  // they stand on a command line

// Ended without having done anything: its agent never began, or an array's was killed before its first task.
bool MadeNoProgress(const Job& job, const Event& slot_ended) {
  if (slot_ended.ending.state == JobState::kQueued) return true;
  return job.is_array() && slot_ended.ending.state == JobState::kLost && slot_ended.tasks == TaskResults{};
}

// One that was told to go and did: whatever its ranks said last. Who has finished has finished; who was
// cancelled meanwhile is.
Ending EndingOfSlot(const Job& job, const Slot& slot, Ending ending) {
  if (!slot.preemption || job.progress.cancel_requested || ending.state == JobState::kQueued) return ending;
  if (ending.state == JobState::kSucceeded && !job.is_array()) return ending;
  ending.state = JobState::kPreempted;
  ending.reason = StrCat("preempted by '", slot.preemption->by, "'");
  return ending;
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

std::string Engine::AreaOf(const JobOwner& owner) const {
  return owner.told() ? StrCat(root_, "/users/", owner.uid) : root_;
}

std::string Engine::JobDir(std::string_view id) const {
  const Job* job = table_.Find(id);
  return StrCat(AreaOf(job != nullptr ? job->spec.owner : JobOwner()), "/jobs/", id);
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
      *why = StrCat("'", dependency.job_id, "', which it waited for, ",
                    other->state == JobState::kFailed ? "has " : "was ", JobStateName(other->state));
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
  queue().Enqueue(queued);
}

void Engine::JobEnded(const Job& job) {
  queue().Remove(job.key);
  failed_starts_.erase(job.key);
  for (Job* dependent : table_.Dependents(job.spec.id)) EnqueueIfReady(*dependent);
}

// ---- agents ----

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
  event.ending = EndingOfSlot(job, slot, outcome.ending);
  event.tasks = std::move(outcome.tasks);
  // When it ended, not when we learnt of it; a clock that was set may not give a time before its start.
  if (outcome.ended_us > slot.started_us) event.time_us = std::min(event.time_us, outcome.ended_us);
  OC_TRY_VOID(Record({event}));
  queue().Release(job.key, slot_number);
  task_readers_.erase({job.key, slot_number});
  stops_.erase({job.key, attempt, slot_number});
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
    queue().Remove(job.key);
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
  const Resources& asked = job.spec.resources;
  event.nodes = std::max(start.allocation.nodes, asked.elastic() ? asked.nodes : 1);
  event.gpus = start.allocation.gpus;
  event.cpus = start.allocation.cpus;
  event.boot_id = agents_.CurrentBoot();
  event.partition = start.partition;
  if (job.array) {
    const auto& retry = job.array->retry;
    event.retry_tasks.assign(retry.begin(),
                             retry.begin() + std::min<std::ptrdiff_t>(std::ssize(retry), kMostRetryTasks));
  }
  OC_TRY_VOID(Record({event}));
  starts_.push_back({job.key, event.attempt, event.slot, start.time_seconds, start.memory_mb});
  UpdateArrayDemand(job);
  return {};
}

Result<void> Engine::StartPass() {
  LookForCheckpoints();
  const int64_t now = clock_.WallUs();
  const std::vector<Start> starts = queue().Pass(now);
  const std::vector<Preempt> preempts = queue().TakePreempts();
  for (size_t i = 0; i < starts.size(); ++i) {
    auto recorded = RecordStart(starts[i]);
    if (recorded) continue;
    if (policy_queue_) {  // what it has decided beside, nobody is told: it begins anew with what is recorded
      FillQueue();
      return recorded;
    }
    for (size_t undone = i; undone < starts.size(); ++undone) queue().Undo(starts[undone]);
    return recorded;
  }
  for (const Preempt& preempt : preempts) {
    if (auto recorded = RecordPreempt(preempt); !recorded) {
      FillQueue();
      return recorded;
    }
  }
  if (const int64_t wake = queue().WakeAtUs(); wake > 0)
    WakeAt(clock_.MonotonicUs() + std::max<int64_t>(wake - now, kSoonestWakeUs));
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
  StopWhatIsDue(now);
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
  for (const auto& [name, signal] : std::exchange(slot_signals_, {})) {
    Job* job = table_.FindKey(name.key);
    const Slot* slot = job == nullptr ? nullptr : job->FindSlot(name.attempt, name.slot);
    if (slot != nullptr && slot->agent) agents_.Signal(*slot->agent, signal);
  }
  if (removals_.empty()) return;
  // Removing many files takes long: they are put aside here and removed by another process.
  std::map<std::string, SideWork> trashes;
  for (const Removal& removal : std::exchange(removals_, {})) {
    const std::string area = AreaOf(removal.owner);
    const SideWork trash{area + "/trash", removal.owner, area};
    if (trashes.emplace(area, trash).second) (void)files_.MakeFolders(trash.folder);
    const std::string folder = StrCat(area, "/jobs/", removal.id);
    if (!files_.Rename(folder, StrCat(trash.folder, "/", removal.id))) (void)files_.RemoveTree(folder);
    if (removal.owner.told()) (void)files_.RemoveTree(StrCat(root_, "/claims/", removal.id));
  }
  for (const auto& [area, trash] : trashes) agents_.EmptyTrash(trash);
}

void Engine::StartAgent(const StartEffect& effect) {
  Job* job = table_.FindKey(effect.key);
  Slot* slot = job == nullptr ? nullptr : job->FindSlot(effect.attempt, effect.slot);
  if (slot == nullptr) return;
  const std::string area = AreaOf(job->spec.owner);
  const SideWork store{area + "/store", job->spec.owner, area};
  AgentStart start{job->spec.id,
                   JobDir(job->spec.id),
                   store.folder,
                   effect.attempt,
                   effect.slot,
                   slot->gpus,
                   slot->cpus,
                   slot->retry_tasks,
                   store.owner,
                   area,
                   ClaimFile(*job, effect.attempt, effect.slot),
                   slot->nodes,
                   effect.time_seconds,
                   effect.memory_mb};
  const AgentToken token{effect.key, effect.attempt, effect.slot};
  const std::string start_spare =
      job->spec.store.empty() ? job->spec.snapshot : "";  // AgentEnded() may end the job
  job->spec_written = job->spec_written || WriteSpec(job->spec);
  const bool ready =
      job->spec_written && files_.MakeFolders(StrCat(start.job_dir, "/attempt-", start.attempt));
  if (!ready) return AgentEnded(token);  // never ran: tried again, ever later
  auto agent = agents_.Start(start);
  if (agent) slot->agent = *agent;
  if (!agent || !agents_.Watch(*agent, token)) AgentEnded(token);
  if (!start_spare.empty()) agents_.PrepareSpare(store, start_spare);
}

// An agent reads it; written again by each engine, since a power cut may have taken it.
Result<void> Engine::WriteSpec(const JobSpec& spec) {
  const std::string dir = StrCat(AreaOf(spec.owner), "/jobs/", spec.id);
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
