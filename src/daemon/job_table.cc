// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_table.h"

#include <algorithm>

#include "base/text.h"
#include "model/job_ref.h"

namespace overcap {
namespace {

constexpr size_t kMostRemoved = 10'000;

tl::unexpected<Error> Misfit(const Event& event, std::string_view why) {
  return Fail(ErrorCode::kCorrupt,
              StrCat("event '", EventKindName(event.kind), "' of job '", event.id, "': ", why));
}

// Whether tasks whose agent was killed are kept for another try, rather than as results.
bool RetriesLostTasks(const Job& job) {
  return job.spec.requeue && !job.ended();
}

// What a user who asks after the end wants to know: where it ran.
void KeepGpus(Job* job, const std::vector<int>& gpus) {
  if (!job->is_array()) job->last_gpus.clear();
  for (const int gpu : gpus) {
    const auto place = std::lower_bound(job->last_gpus.begin(), job->last_gpus.end(), gpu);
    if (place == job->last_gpus.end() || *place != gpu) job->last_gpus.insert(place, gpu);
  }
}

Event PreemptOf(const Job& job, const Slot& slot) {
  Event event;
  event.kind = EventKind::kPreempt;
  event.time_us = slot.preemption->told_us;
  event.id = job.spec.id;
  event.attempt = slot.attempt;
  event.slot = slot.slot;
  event.by = slot.preemption->by;
  event.stop_us = slot.preemption->stop_us;
  return event;
}

void Append(std::vector<std::pair<int, int>>* to, const std::vector<std::pair<int, int>>& from) {
  to->insert(to->end(), from.begin(), from.end());
}

int64_t BytesOf(const std::vector<std::string>& texts) {
  constexpr int64_t kEach = 16;
  int64_t bytes = kEach * std::ssize(texts);
  for (const std::string& text : texts) bytes += std::ssize(text);
  return bytes;
}

}  // namespace

int64_t SpecBytes(const JobSpec& spec) {
  int64_t bytes = 0;
  for (const std::string* text :
       {&spec.name, &spec.cluster, &spec.workdir, &spec.source, &spec.mounts_at, &spec.allocation})
    bytes += std::ssize(*text);
  bytes += BytesOf(spec.command) + BytesOf(spec.env_names) + BytesOf(spec.placement.args) +
           BytesOf(spec.placement.partitions);
  for (const SweepAxis& axis : spec.sweep) bytes += std::ssize(axis.name) + BytesOf(axis.values);
  for (const Dependency& dependency : spec.after)
    bytes += std::ssize(dependency.job_id) * 2;  // it is a key as well
  for (const auto& [name, value] : spec.store.options) bytes += std::ssize(name) + std::ssize(value);
  for (const MountSpec& mount : spec.mounts)
    bytes += std::ssize(mount.store) + std::ssize(mount.at) + BytesOf(mount.options);
  return bytes + std::ssize(spec.array.ranges) * static_cast<int64_t>(sizeof(ArraySpec::Range));
}

JobTable::HeldBytes JobTable::HeldBy(int64_t uid) const {
  const auto found = held_.find(uid);
  return found == held_.end() ? HeldBytes() : found->second;
}

Job* JobTable::Find(std::string_view id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Job* JobTable::FindKey(uint64_t key) {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : found->second.get();
}

int JobTable::ActiveCount() const {
  return Count(JobState::kHeld) + Count(JobState::kQueued) + Count(JobState::kRunning) +
         Count(JobState::kPreempted);
}

Result<void> JobTable::Apply(const Event& event) {
  if (event.kind == EventKind::kSubmitted) return Submitted(event);
  Job* job = Find(event.id);
  if (job == nullptr) return Misfit(event, "there is no such job");
  if (job->ended() && event.kind != EventKind::kRemoved) return Misfit(event, "the job has ended");
  switch (event.kind) {
    case EventKind::kHeld:
      if (job->state != JobState::kQueued) return Misfit(event, "the job is not queued");
      SetState(*job, JobState::kHeld);
      return {};
    case EventKind::kReleased:
      if (job->state != JobState::kHeld) return Misfit(event, "the job is not held");
      SetState(*job, JobState::kQueued);
      return {};
    case EventKind::kStarted:
      return Started(*job, event);
    case EventKind::kCancel:
      job->progress.cancel_requested = true;
      job->ending.reason = event.reason;
      return {};
    case EventKind::kPreempt:
      return Preempted(*job, event);
    case EventKind::kSlotEnded:
      return SlotEnded(*job, event);
    case EventKind::kRequeued:
      if (job->state != JobState::kRunning) return Misfit(event, "the job does not run");
      job->slots.clear();
      SetState(*job, JobState::kQueued);
      job->ending.reason = event.reason;
      return {};
    case EventKind::kEnded:
      if (!IsFinal(event.ending.state)) return Misfit(event, "its state is not that of an end");
      Ended(*job, event);
      return {};
    case EventKind::kRemoved:
      Remove(*job);
      return {};
    case EventKind::kState:
      return RestoreState(*job, event);
    case EventKind::kMachine:
    case EventKind::kJournal:
    case EventKind::kSubmitted:
      break;
  }
  return Misfit(event, "it does not belong here");
}

Result<void> JobTable::Submitted(const Event& event) {
  if (event.spec.id != event.id) return Misfit(event, StrCat("it describes job '", event.spec.id, "'"));
  if (Find(event.spec.id) != nullptr) return Misfit(event, "the job exists already");
  auto job = std::make_unique<Job>();
  job->key = next_key_++;
  job->spec = event.spec;
  job->state = event.spec.hold ? JobState::kHeld : JobState::kQueued;
  if (job->is_array()) job->array = std::make_unique<ArrayProgress>();
  ++counts_[static_cast<size_t>(job->state)];
  job->spec_bytes = SpecBytes(job->spec);
  HeldBytes& held = held_[job->spec.owner.uid];
  held.open += job->spec_bytes;
  held.all += job->spec_bytes;
  by_id_.emplace(job->spec.id, job.get());
  for (const Dependency& dependency : job->spec.after) dependents_.emplace(dependency.job_id, job->key);
  if (!job->spec.replaces.empty()) dependents_.emplace(job->spec.replaces, job->key);
  jobs_.emplace(job->key, std::move(job));
  return {};
}

Result<void> JobTable::Started(Job& job, const Event& event) {
  if (job.state == JobState::kHeld) return Misfit(event, "the job is held");
  if (event.attempt < 1 || event.slot < 0) return Misfit(event, "there is no such slot");
  if (job.FindSlot(event.attempt, event.slot) != nullptr) return Misfit(event, "the slot is in use already");
  // A plain job has one slot: a second one while the first is in use would be a second run.
  if (!job.is_array() && !job.slots.empty()) return Misfit(event, "another slot of the job is in use");
  job.slots.push_back({event.attempt, event.slot, event.gpus, event.cpus, event.boot_id, event.retry_tasks,
                       event.time_us, event.partition, std::nullopt, std::nullopt, event.nodes, 0,
                       event.host});
  if (!event.partition.empty()) job.progress.partition = event.partition;
  KeepGpus(&job, event.gpus);
  job.progress.attempt = event.attempt;
  job.progress.next_slot = std::max(job.progress.next_slot, event.slot + 1);
  if (job.progress.started_us == 0 || !job.is_array()) job.progress.started_us = event.time_us;
  job.ending.reason.clear();
  for (const int task : event.retry_tasks) {
    if (job.array) std::erase(job.array->retry, task);
  }
  SetState(job, JobState::kRunning);
  return {};
}

Result<void> JobTable::Preempted(Job& job, const Event& event) {
  Slot* slot = job.FindSlot(event.attempt, event.slot);
  if (slot == nullptr) return Misfit(event, "there is no such slot");
  if (slot->preemption) return {};
  slot->preemption = {event.by, event.time_us, event.stop_us};
  ++job.progress.preemptions;
  job.progress.preempted_by = event.by;
  return {};
}

Result<void> JobTable::SlotEnded(Job& job, const Event& event) {
  Slot* slot = job.FindSlot(event.attempt, event.slot);
  if (slot == nullptr) return Misfit(event, "there is no such slot");
  job.slots.erase(job.slots.begin() + (slot - job.slots.data()));
  job.last_attempt = event.ending;
  job.last_attempt_us = event.time_us;
  if (event.ending.state == JobState::kFailed && !job.is_array()) ++job.progress.restarts;
  if (event.ending.state == JobState::kLost) ++job.progress.losses;
  if (!job.array) return {};
  job.array->done.succeeded += event.tasks.succeeded;
  Append(&job.array->done.failed, event.tasks.failed);
  const bool never_ran = event.ending.state == JobState::kQueued;
  const bool preempted = event.ending.state == JobState::kPreempted;
  const bool again = never_ran || preempted || (job.spec.requeue && event.ending.state == JobState::kLost);
  std::vector<int>* lost = again ? &job.array->retry : &job.array->done.lost;
  lost->insert(lost->end(), event.tasks.lost.begin(), event.tasks.lost.end());
  if (event.ending.state == JobState::kSucceeded) job.array->drained = true;
  if (event.ending.state == JobState::kFailed) job.array->broken = event.ending;
  return {};
}

void JobTable::Ended(Job& job, const Event& event) {
  job.ending = event.ending;
  job.progress.ended_us = event.time_us;
  job.slots.clear();
  SetState(job, event.ending.state);
}

// The record follows `submitted` directly.
Result<void> JobTable::RestoreState(Job& job, const Event& event) {
  if (job.state == JobState::kRunning || job.progress != JobProgress{} || !job.ending.reason.empty())
    return Misfit(event, "the job has gone on already");
  if (event.ending.state == JobState::kUnknown) return Misfit(event, "its state is not known");
  job.ending = event.ending;
  job.progress = event.progress;
  job.last_gpus = event.gpus;
  SetState(job, event.ending.state);
  if (!job.array) return {};
  job.array->done = event.tasks;
  if (RetriesLostTasks(job)) job.array->retry.swap(job.array->done.lost);
  job.array->retry.insert(job.array->retry.end(), event.retry_tasks.begin(), event.retry_tasks.end());
  return {};
}

void JobTable::Remove(Job& job) {
  --counts_[static_cast<size_t>(job.state)];
  if (removed_.insert(job.spec.id).second) removed_order_.push_back(job.spec.id);
  if (removed_order_.size() > kMostRemoved) {
    removed_.erase(removed_order_.front());
    removed_order_.pop_front();
  }
  HeldBytes& held = held_[job.spec.owner.uid];
  held.all -= job.spec_bytes;
  if (!job.ended()) held.open -= job.spec_bytes;
  by_id_.erase(job.spec.id);
  jobs_.erase(job.key);
}

void JobTable::SetState(Job& job, JobState state) {
  --counts_[static_cast<size_t>(job.state)];
  if (IsFinal(job.state) != IsFinal(state))
    held_[job.spec.owner.uid].open += IsFinal(state) ? -job.spec_bytes : job.spec_bytes;
  job.state = state;
  ++counts_[static_cast<size_t>(state)];
}

std::vector<Job*> JobTable::Dependents(std::string_view id) {
  std::vector<Job*> found;
  const auto [begin, end] = dependents_.equal_range(std::string(id));
  for (auto it = begin; it != end; ++it) {
    if (Job* job = FindKey(it->second); job != nullptr && !job->ended()) found.push_back(job);
  }
  std::sort(found.begin(), found.end(), [](const Job* a, const Job* b) { return a->key < b->key; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<std::string> JobTable::Resolve(std::string_view ref,
                                      const std::function<bool(const Job&)>& among) const {
  if (Find(ref) != nullptr) return std::string(ref);
  std::vector<JobRefCandidate> candidates;
  candidates.reserve(jobs_.size());
  for (const auto& [key, job] : jobs_) {
    if (!among || among(*job)) candidates.push_back({job->spec.id, job->spec.name});
  }
  return ResolveJobRef(ref, candidates,
                       [this](std::string_view id) { return ToUtf8(ShellJoin(Find(id)->spec.command)); });
}

std::vector<Event> JobTable::Compact() const {
  std::vector<Event> events;
  for (const auto& [key, job] : jobs_) {
    Event submitted;
    submitted.kind = EventKind::kSubmitted;
    submitted.time_us = job->spec.submitted_us;
    submitted.id = job->spec.id;
    submitted.spec = job->spec;
    events.push_back(submitted);
    Event state;
    state.kind = EventKind::kState;
    state.time_us = job->progress.ended_us;
    state.id = job->spec.id;
    state.ending = job->ending;
    state.ending.state = job->state;
    state.progress = job->progress;
    for (const Slot& slot : job->slots) state.progress.preemptions -= slot.preemption ? 1 : 0;
    state.gpus = job->last_gpus;
    if (job->array) {
      state.tasks = job->array->done;
      (RetriesLostTasks(*job) ? state.tasks.lost : state.retry_tasks) = job->array->retry;
    }
    events.push_back(state);
    for (const Slot& slot : job->slots) {
      Event started;
      started.kind = EventKind::kStarted;
      started.time_us = slot.started_us;
      started.id = job->spec.id;
      started.attempt = slot.attempt;
      started.slot = slot.slot;
      started.nodes = slot.nodes;
      started.gpus = slot.gpus;
      started.cpus = slot.cpus;
      started.boot_id = slot.boot_id;
      started.host = slot.host;
      started.retry_tasks = slot.retry_tasks;
      started.partition = slot.partition;
      events.push_back(started);
      if (slot.preemption) events.push_back(PreemptOf(*job, slot));
    }
  }
  return events;
}

}  // namespace overcap
