// SPDX-License-Identifier: Apache-2.0
// The engine with a policy: its queue, and slots that have to give way. With or without one: the end of slots
// that outlive their time limit.
#include <algorithm>
#include <climits>
#include <csignal>

#include "base/text.h"
#include "daemon/engine.h"

namespace overcap {
namespace {

constexpr int64_t kLookAgainUs = 2'000'000;  // for checkpoints
constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kMountsUs = 3600 * kSecondUs;   // for mounting a job's stores, and again for saving them
constexpr int64_t kKillAgainUs = 10 * kSecondUs;  // between KILLs of an agent that does not die

}  // namespace

// ---- the queue

Result<void> Engine::SetPolicy(Policy policy, bool exact) {
  if (opened_) OC_TRY_VOID(pooled::MachinePool::Make(policy, machine_, exact));
  policy_ = std::move(policy);
  exact_policy_ = exact;
  if (!opened_) return {};
  OC_TRY_VOID(MakeQueue());
  FillQueue();
  return {};
}

Result<void> Engine::MakeQueue() {
  OC_TRY(pool, pooled::MachinePool::Make(*policy_, machine_, exact_policy_));
  policy_queue_ = std::make_unique<PolicyQueue>(table_, clock_, std::move(pool), machine_);
  scheduler_ = Scheduler();
  scheduler_.SetNodes({machine_});
  return {};
}

// A queue that stands where the table does.
void Engine::FillQueue() {
  if (!MakeQueue()) return;
  std::vector<Job*> active;
  for (const auto& [key, job] : table_.jobs()) {
    if (!job->ended()) active.push_back(job.get());
  }
  for (const Job* job : active) {
    for (const Slot& slot : job->slots) AdoptSlot(*job, slot);
  }
  for (Job* job : active) {
    EnqueueIfReady(*job);
    UpdateArrayDemand(*job);
  }
}

LivePoolReading Engine::LivePool() const {
  pooled::MachinePool pool = policy_queue_->pool();
  return LivePoolOf(table_, &pool);
}

Result<void> Engine::CheckPlacement(JobSpec* spec) {
  const Placement& place = spec->placement;
  if (!policy_queue_) {
    if (place == Placement{}) return {};
    return Fail(ErrorCode::kUsage,
                StrCat("cluster '", spec->cluster, "' has no partitions, accounts, QOS or nodes to choose"),
                "`overcap policy apply FILE` gives the engine of this machine labs and partitions");
  }
  if (!place.qos.empty() || !place.node.empty() || !place.args.empty()) {
    return Fail(ErrorCode::kUsage,
                StrCat("cluster '", spec->cluster,
                       "' has partitions and labs, but no QOS, nodes or words of its own"),
                "-p names partitions, --account the lab");
  }
  OC_TRY_VOID(policy_queue_->Check(*spec));
  OC_TRY(lab, pooled::LabOf(*policy_, *spec));
  spec->lab = std::move(lab);
  return {};
}

// ---- slots that give way

// A job saves its work in its state folder: the time of the last change there.
void Engine::LookForCheckpoints() {
  const int64_t now = clock_.MonotonicUs();
  if (!policy_queue_ || now - looked_for_checkpoints_us_ < kLookAgainUs) return;
  looked_for_checkpoints_us_ = now;
  for (const auto& [key, job] : table_.jobs()) {
    for (const Slot& slot : job->slots) {
      if (job->is_array()) continue;
      const int64_t changed_us = files_.FolderChangedUs(JobDir(job->spec.id) + "/state");
      if (changed_us > slot.started_us) policy_queue_->Checkpointed(key, slot.slot, changed_us);
    }
  }
}

Result<void> Engine::RecordPreempt(const Preempt& preempt) {
  const Job* by = table_.FindKey(preempt.by);
  Job* job = table_.FindKey(preempt.key);
  const auto slot = std::find_if(job->slots.begin(), job->slots.end(),
                                 [&](const Slot& one) { return one.slot == preempt.slot; });
  if (slot == job->slots.end()) return {};
  Event event = MakeEvent(EventKind::kPreempt, *job);
  event.attempt = slot->attempt;
  event.slot = slot->slot;
  event.by = by == nullptr ? "" : by->spec.id;
  event.stop_us = event.time_us + preempt.grace_s * 1'000'000;
  OC_TRY_VOID(Record({event}));
  RemindSlot(*job, *job->FindSlot(event.attempt, event.slot));
  return {};
}

void Engine::RemindSlot(const Job& job, const Slot& slot) {
  const SlotName name{job.key, slot.attempt, slot.slot};
  slot_signals_.emplace_back(name, SIGUSR1);
  if (job.is_array()) slot_signals_.emplace_back(name, SIGUSR2);  // takes no further task
  const int64_t grace_us = slot.preemption->stop_us - slot.preemption->told_us;
  const int64_t left_us = std::clamp<int64_t>(slot.preemption->stop_us - clock_.WallUs(), 0, grace_us);
  stops_[name] = {clock_.MonotonicUs() + left_us, false};
  WakeAt(stops_[name].at_us);
}

// ---- time limits

int64_t Engine::TimeLimitOf(const Job& job, const Slot& slot) const {
  if (slot.time_seconds > 0) return slot.time_seconds;
  if (job.spec.resources.time_seconds > 0 || !policy_queue_) return job.spec.resources.time_seconds;
  return policy_queue_->TimeLimitIn(slot.partition);
}

// The agent ends a job at its limit. The engine's own deadline is for an agent that its user has stopped or
// changed. It meets an unchanged one only if fetching the job's code took longer than the slack: then the
// agent gets TERM first, and its ranks have their grace.
int64_t Engine::AllowedUs(const Job& job, const Slot& slot) const {
  const int64_t limit_s = TimeLimitOf(job, slot);
  if (limit_s == 0) return 0;
  const int64_t once_us = (limit_s + job.spec.warn_seconds) * kSecondUs + cancel_patience_us_;
  // The limit of an array is the limit of each task, and one slot may run all of them.
  const int64_t times = job.is_array() ? job.spec.array.Count() : 1;
  const int64_t mounts_us = job.spec.mounts.empty() ? 0 : 2 * kMountsUs;
  if (once_us > (INT64_MAX / 2 - mounts_us) / times) return 0;
  return once_us * times + mounts_us;
}

// `used_us`: how long its agent has been running.
void Engine::SetDeadline(const Job& job, const Slot& slot, int64_t used_us) {
  const int64_t allowed_us = AllowedUs(job, slot);
  if (allowed_us == 0) return;
  const int64_t at_us = clock_.MonotonicUs() + std::max<int64_t>(0, allowed_us - grace_us_ - used_us);
  deadlines_[{job.key, slot.attempt, slot.slot}] = {at_us, false};
  WakeAt(at_us);
}

void Engine::KillOverdue(int64_t now) {
  for (auto& [name, deadline] : deadlines_) {
    if (deadline.at_us <= now) {
      slot_signals_.emplace_back(name, deadline.passed ? SIGKILL : SIGTERM);
      deadline = {now + (deadline.passed ? kKillAgainUs : grace_us_), true};
    }
    WakeAt(deadline.at_us);
  }
}

void Engine::StopWhatIsDue(int64_t now) {
  for (auto& [name, stop] : stops_) {
    if (stop.at_us <= now) {
      slot_signals_.emplace_back(name, stop.stopped ? SIGKILL : SIGTERM);
      // The agent has its own ladder for the ranks; an agent that hangs itself is killed.
      stop = {now + cancel_patience_us_, true};
    }
    WakeAt(stop.at_us);
  }
}

}  // namespace overcap
