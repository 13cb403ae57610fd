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
constexpr int64_t kLookElsewhereUs = 10'000'000;  // between looks for the end of a slot on another host
constexpr int64_t kSoonestWakeUs = 20'000;
constexpr int kMostDoublings = 6;  // of that time: about a minute
constexpr int64_t kQuickUs =
    10'000'000;                    // an attempt that fails or requeues itself sooner is a quick failure
constexpr int kFreeRestarts = 3;   // quick failures in a row; then each restart comes later
constexpr int kMostRemovals = 12;  // tries to remove a folder: some ten minutes
constexpr std::ptrdiff_t kMostRetryTasks = 5'000;  // they are on a command line

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
  quick_failures_.erase(job.key);
  for (Job* dependent : table_.Dependents(job.spec.id)) EnqueueIfReady(*dependent);
}

// ---- agents ----

void Engine::AgentEnded(const AgentToken& token) {
  TakeEnd({token, clock_.WallUs(), false});
}

void Engine::TakeEnd(PendingEnd end) {
  const AgentToken& token = end.token;
  Job* job = table_.FindKey(token.job_key);
  Slot* slot = job == nullptr ? nullptr : job->FindSlot(token.attempt, token.slot);
  if (slot == nullptr) return;
  // Nobody but a dead agent gives its slot back: one that lives and could not be watched is looked at again.
  if (auto agent = LiveAgent(*job, *slot)) {
    slot->agent = *agent;
    if (agents_.Watch(*agent, token)) return;
  } else if (slot->elsewhere && !HasReportedItsEnd(*job, *slot)) {
    pending_ends_.push_back(end);
    return WakeAt(clock_.MonotonicUs() + kLookElsewhereUs);
  } else {
    auto recorded = SlotEnded(*job, end);
    if (recorded) return;
    end.ended = true;
    end_problem_ = std::move(recorded).error();
  }
  pending_ends_.push_back(end);
  WakeAt(clock_.MonotonicUs() + kRetryAfterUs);
}

bool Engine::HasPendingEnd(const Job& job) const {
  return std::any_of(pending_ends_.begin(), pending_ends_.end(),
                     [&](const PendingEnd& end) { return end.ended && end.token.job_key == job.key; });
}

Result<void> Engine::RecordPendingEnds(Job& job) {
  std::optional<Error> failed;
  if (HasPendingEnd(job)) {
    for (const PendingEnd& end : std::exchange(pending_ends_, {})) {
      if (end.token.job_key == job.key) {
        TakeEnd(end);
      } else {
        pending_ends_.push_back(end);
      }
    }
    if (HasPendingEnd(job)) failed = end_problem_;
  }
  // The end of the last slot is recorded, but not yet what it means for the job.
  if (!failed && job.state == JobState::kRunning && job.slots.empty()) {
    if (auto settled = Settle(job); !settled) failed = std::move(settled).error();
  }
  if (!failed) return {};
  return Fail(
      failed->code,
      StrCat("job '", job.spec.id, "' has ended, and its end cannot be recorded yet: ", failed->message),
      StrCat("free some space on the disk of '", root_, "': its end is recorded within a second"));
}

std::string Engine::Problem() const {
  if (const auto& problem = journal_.problem()) {
    return StrCat("the engine cannot write its journal: ", problem->message,
                  "; nothing new starts until there is space on the disk of '", root_,
                  "', and what ends is recorded then");
  }
  const auto ended = std::count_if(pending_ends_.begin(), pending_ends_.end(),
                                   [](const PendingEnd& end) { return end.ended; });
  if (ended == 0 || !end_problem_) return {};
  return StrCat("the engine cannot record the end of ", CountOf(ended, "job"), ": ", end_problem_->message,
                "; it tries again every second: look at '", root_, "'");
}

// When the slot ended. The report says so for jobs of the engine's own user. For jobs of others the engine's
// clock counts, and their report only for the time when no engine ran.
int64_t Engine::EndTime(const Job& job, const Slot& slot, const SlotOutcome& outcome, int64_t seen_us) const {
  const int64_t reported_us = outcome.ended_us > slot.started_us ? outcome.ended_us : seen_us;
  if (!job.spec.owner.told()) return std::min(seen_us, reported_us);
  const int64_t earliest_us = recovering_ ? std::min(seen_us, last_record_us_) : seen_us;
  return std::clamp(reported_us, earliest_us, seen_us);
}

Result<void> Engine::SlotEnded(Job& job, const PendingEnd& end) {
  const int attempt = end.token.attempt, slot_number = end.token.slot;
  const Slot slot = *job.FindSlot(attempt, slot_number);
  OC_TRY(outcome, ReadOutcome(job, slot));
  Event event = MakeEvent(EventKind::kSlotEnded, job);
  event.attempt = attempt;
  event.slot = slot_number;
  event.ending = EndingOfSlot(job, slot, outcome.ending);
  event.tasks = std::move(outcome.tasks);
  event.time_us = EndTime(job, slot, outcome, end.seen_us);
  OC_TRY_VOID(Record({event}));
  queue().Release(job.key, slot_number);
  task_readers_.erase({job.key, slot_number});
  stops_.erase({job.key, attempt, slot_number});
  deadlines_.erase({job.key, attempt, slot_number});
  start_errors_.erase(job.key);
  if (job.SlotElsewhere() == nullptr) elsewhere_.erase(job.key);
  if (MadeNoProgress(job, event)) {
    ++failed_starts_[job.key];
  } else {
    failed_starts_.erase(job.key);
  }
  const bool by_itself = event.ending.state == JobState::kPreempted && !slot.preemption;
  const bool failed = event.ending.state == JobState::kFailed || by_itself;
  const bool quick = failed && event.time_us - slot.started_us < kQuickUs;
  quick_failures_[job.key] = quick ? quick_failures_[job.key] + 1 : 0;
  if (!Settle(job)) TryAgainLater(job);
  return {};
}

// Again in a second, then ever later: what could not be done now will hardly be done at once.
void Engine::TryAgainLater(const Job& job) {
  const auto failed = failed_starts_.find(job.key);
  const auto quick = quick_failures_.find(job.key);
  const int starts = failed == failed_starts_.end() ? 0 : failed->second;
  const int restarts = quick == quick_failures_.end() ? 0 : quick->second - kFreeRestarts - 1;
  const int doublings = std::clamp(std::max(starts, restarts), 0, kMostDoublings);
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
    OC_TRY(unreported, UnreportedTasks(job));
    job.array->retry = std::move(unreported);
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
    if (failed_starts_.contains(job.key) || quick_failures_[job.key] > kFreeRestarts) {
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
  event.host = agents_.CurrentHost();
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
  for (const PendingEnd& end : std::exchange(pending_ends_, {})) TakeEnd(end);
  if (journal_.problem()) journal_.FillReserve();
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
  for (Removal& removal : std::exchange(later_removals_, {})) {
    if (removal.at_us > now) WakeAt(removal.at_us);
    (removal.at_us <= now ? removals_ : later_removals_).push_back(std::move(removal));
  }
  StopWhatIsDue(now);
  KillOverdue(now);
  for (auto it = cancels_.begin(); it != cancels_.end();) {
    const Job* job = table_.FindKey(it->first);
    const bool over = job == nullptr || job->ended();
    if (!over && it->second <= now) signals_.emplace_back(it->first, SIGKILL);
    if (!over && it->second > now) WakeAt(it->second);
    it = over || it->second <= now ? cancels_.erase(it) : std::next(it);
  }
}

Result<void> Engine::Turn(const std::function<void()>& committed) {
  counted_bytes_ = 0;
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
  if (journal_.problem()) WakeAt(now + kRetryAfterUs);
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
  RemoveFolders();
}

// Removing many files takes long: the engine only moves folders to the trash, which another process empties.
void Engine::RemoveFolders() {
  if (removals_.empty()) return;
  std::map<std::string, SideWork> trashes;
  for (Removal& removal : std::exchange(removals_, {})) {
    const std::string area = AreaOf(removal.owner);
    const SideWork trash{area + "/trash", removal.owner, area, false};
    if (removal.owner.told()) (void)files_.RemoveTree(StrCat(root_, "/claims/", removal.id));
    if (PutAside(removal, trash)) {
      trashes.emplace(area, trash);
      continue;
    }
    // A full disk may have no room for the move: the files are removed where they are.
    agents_.EmptyTrash({StrCat(area, "/jobs/", removal.id), removal.owner, area, true});
    if (removal.tries == kMostRemovals) continue;  // agent.log says what is left; the next engine tries again
    removal.at_us = clock_.MonotonicUs() + (kRetryAfterUs << std::min(removal.tries++, kMostDoublings));
    WakeAt(removal.at_us);
    later_removals_.push_back(std::move(removal));
  }
  for (const auto& [area, trash] : trashes) agents_.EmptyTrash(trash);
}

// True: the job's folder is not in its place any more.
bool Engine::PutAside(const Removal& removal, const SideWork& trash) {
  const std::string folder = StrCat(AreaOf(removal.owner), "/jobs/", removal.id);
  const std::string aside = StrCat(trash.folder, "/", removal.id);
  if (files_.Rename(folder, aside) || !files_.Exists(folder)) return true;
  return files_.MakeFolders(trash.folder) && files_.Rename(folder, aside);
}

void Engine::StartAgent(const StartEffect& effect) {
  Job* job = table_.FindKey(effect.key);
  Slot* slot = job == nullptr ? nullptr : job->FindSlot(effect.attempt, effect.slot);
  if (slot == nullptr) return;
  const std::string area = AreaOf(job->spec.owner);
  const SideWork store{area + "/store", job->spec.owner, area};
  slot->time_seconds = effect.time_seconds > 0 ? effect.time_seconds : job->spec.resources.time_seconds;
  const int64_t memory_bytes = effect.memory_mb > 0 ? effect.memory_mb << 20 : job->spec.resources.mem_bytes;
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
                   slot->time_seconds,
                   memory_bytes,
                   job->spec.owner.told() && !job->spec.resources.elastic(),
                   {}};
  for (const int index : slot->gpus) {
    const auto gpu = std::find_if(machine_.gpus.begin(), machine_.gpus.end(),
                                  [index](const Gpu& one) { return one.index == index; });
    start.gpu_uuids.push_back(gpu == machine_.gpus.end() ? "" : gpu->uuid);
  }
  const AgentToken token{effect.key, effect.attempt, effect.slot};
  const std::string start_spare =
      job->spec.store.empty() ? job->spec.snapshot : "";  // AgentEnded() may end the job
  auto ready = job->spec_written ? Result<void>() : WriteSpec(job->spec);
  job->spec_written = ready.has_value();
  if (ready) ready = files_.MakeFolders(StrCat(start.job_dir, "/attempt-", start.attempt));
  if (!ready) {  // never ran: tried again, ever later
    start_errors_[job->key] = ready.error().message;
    return AgentEnded(token);
  }
  SetDeadline(*job, *slot, 0);
  auto agent = agents_.Start(start);
  if (agent) slot->agent = *agent;
  if (!agent) start_errors_[job->key] = agent.error().message;
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
