// SPDX-License-Identifier: Apache-2.0
// What clients ask of the engine. Each records or refuses, changing nothing; the next turn acts.
#include <csignal>
#include <set>

#include "base/text.h"
#include "daemon/engine.h"
#include "daemon/root_lock.h"
#include "model/fits.h"
#include "sys/own_host_name.h"

namespace overcap {

Result<const Job*> Engine::Submit(const JobSpec& asked) {
  JobSpec spec = asked;
  if (const Job* job = table_.Find(spec.id); job != nullptr) {
    spec.lab = job->spec.lab;  // the engine's word, of then
    if (job->spec == spec) return job;
    return Fail(ErrorCode::kConflict, StrCat("job '", spec.id, "' exists already and is another one"));
  }
  if (table_.WasRemoved(spec.id)) {
    return Fail(ErrorCode::kNotFound, StrCat("job '", spec.id, "' was queued, has ended and was removed"),
                "submit it again to run it again");
  }
  OC_TRY_VOID(ValidateSpec(spec));
  OC_TRY_VOID(CheckFits(spec.resources, machine_));
  spec.lab.clear();
  OC_TRY_VOID(CheckPlacement(&spec));
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
    (void)files_.RemoveTree(StrCat(AreaOf(spec.owner), "/jobs/", spec.id));
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
  if (const Slot* slot = job->SlotElsewhere(); slot != nullptr) {
    const std::string_view host = HostNameIn(slot->host);
    return Fail(ErrorCode::kConflict,
                StrCat("job '", id, "' runs on host '", host, "', and this engine runs on '",
                       HostNameIn(agents_.CurrentHost()), "'"),
                OtherHostHint(host));
  }
  // A job that has ended by itself was not cancelled.
  OC_TRY_VOID(RecordPendingEnds(*job));
  if (job->ended()) return {};
  if (job->slots.empty()) return EndUnstarted(*job, reason);
  Event cancel = MakeEvent(EventKind::kCancel, *job);
  cancel.reason = reason;
  OC_TRY_VOID(Record({cancel}));
  queue().Remove(job->key);
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
    queue().Remove(job->key);
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
  std::vector<Removal> removals;
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
    if (!seen.insert(id).second) continue;
    events.push_back(MakeEvent(EventKind::kRemoved, *job));
    removals.push_back({id, job->spec.owner});
  }
  auto recorded = Record(events);
  if (!recorded && recorded.error().code == ErrorCode::kUnavailable) {
    // The disk is full, and the user wants to make room: the folders are removed first. If the removal cannot
    // be recorded even then, the jobs stay in the list without their folders.
    const auto folders = removals;
    removals_.insert(removals_.end(), folders.begin(), folders.end());
    RemoveFolders();
    recorded = Record(events);
    if (!recorded) {
      return Fail(
          recorded.error().code,
          StrCat("the files are being deleted, but that cannot be recorded yet: ", recorded.error().message),
          "type the command again when there is some space");
    }
    return {};
  }
  OC_TRY_VOID(std::move(recorded));
  removals_.insert(removals_.end(), removals.begin(), removals.end());
  return {};
}

Result<bool> Engine::Configure(const Machine& machine) {
  if (machine == machine_ || HasRunning()) return false;
  if (policy_ && !pooled::MachinePool::Make(*policy_, machine, true)) return false;
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
  if (policy_queue_) FillQueue();
}

}  // namespace overcap
