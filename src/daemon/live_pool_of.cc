// SPDX-License-Identifier: Apache-2.0
#include "daemon/live_pool_of.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

pooled::LiveRun RunOf(const Job& job, const Slot& slot, pooled::MachinePool* machine) {
  pooled::LiveRun run;
  run.job = machine->TakeRunning(job.spec, job.key);
  run.slot = slot.slot;
  run.partition = machine->PartitionAt(slot.partition);
  run.shares = machine->SharesOf(slot.gpus);
  run.started_s = slot.started_us / kSecondUs;
  run.leaving = slot.preemption.has_value();
  return run;
}

// What a job that has ended used in its last attempt; earlier ones have left no times in the table.
void AddUse(const Job& job, pooled::MachinePool* machine, std::vector<pooled::LiveUse>* uses) {
  const int64_t seconds = (job.progress.ended_us - job.progress.started_us) / kSecondUs;
  if (job.progress.started_us == 0 || seconds <= 0 || job.is_array()) return;
  const pooled::PoolJob told = machine->TakeRunning(job.spec, job.key);
  const auto& rule =
      machine->rules().partitions[static_cast<size_t>(machine->PartitionAt(job.progress.partition))];
  const double gpus = told.need.gpus > 0 ? told.need.gpus : told.need.cpus / 8.0;
  uses->push_back(
      {told.account, gpus * static_cast<double>(seconds) * rule.charge, job.progress.ended_us / kSecondUs});
}

}  // namespace

bool WaitsForNobody(const JobTable& table, const Job& job) {
  const Job* old = job.spec.replaces.empty() ? nullptr : table.Find(job.spec.replaces);
  if (old != nullptr && !old->ended()) return false;
  return std::all_of(job.spec.after.begin(), job.spec.after.end(), [&](const Dependency& dependency) {
    const Job* other = table.Find(dependency.job_id);
    if (other == nullptr) return true;
    return dependency.any_end ? other->ended() : other->state == JobState::kSucceeded;
  });
}

std::vector<pooled::LiveUse> UsesOf(const JobTable& table, pooled::MachinePool* machine) {
  std::vector<pooled::LiveUse> uses;
  for (const auto& [key, job] : table.jobs()) {
    if (job->ended()) AddUse(*job, machine, &uses);
  }
  return uses;
}

LivePoolReading LivePoolOf(const JobTable& table, pooled::MachinePool* machine) {
  LivePoolReading reading;
  reading.pool.uses = UsesOf(table, machine);
  for (const auto& [key, job] : table.jobs()) {
    if (job->ended()) continue;
    for (const Slot& slot : job->slots) {
      if (!slot.elsewhere) reading.pool.running.push_back(RunOf(*job, slot, machine));
    }
    const bool more = job->state == JobState::kQueued && !job->progress.cancel_requested;
    if (!more || !WaitsForNobody(table, *job)) continue;
    auto taken = machine->Take(job->spec, key);
    if (taken) {
      reading.pool.waiting.push_back(*taken);
    } else {
      reading.refused.emplace(key, std::move(taken).error());
    }
  }
  reading.pool.rules = machine->rules();
  reading.pool.accounts = machine->accounts();
  return reading;
}

}  // namespace overcap
