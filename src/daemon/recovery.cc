// SPDX-License-Identifier: Apache-2.0
// How the engine finds its way back after it was stopped, killed, or the machine went down.
#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "daemon/engine.h"

namespace overcap {
namespace {

constexpr int64_t kSmallJournal = 10'000;  // records; not worth a rewrite
constexpr size_t kRecentRecords = 4'000;   // more than one turn ever appends: whose copies may be behind

ProcessIdentity IdentityOf(const Claim& claim) {
  return {static_cast<pid_t>(claim.pid), static_cast<uint64_t>(claim.start_ticks), claim.boot_id};
}

}  // namespace

Result<void> Engine::Open() {
  OC_TRY_VOID(files_.MakeFolders(root_ + "/jobs"));
  OC_TRY_VOID(files_.SyncFolder(root_));
  OC_TRY_VOID(files_.SyncFolder(root_.substr(0, std::max<size_t>(1, root_.rfind('/')))));
  std::deque<std::string> recent;
  OC_TRY_VOID(journal_.Open([&](Event event) -> Result<void> {
    if (event.kind == EventKind::kMachine) {
      // What was detected may have changed since; what a configuration declared holds until another one
      // comes.
      if (event.machine.declared) SetMachine(event.machine);
      return {};
    }
    recent.push_back(event.id);
    if (recent.size() > kRecentRecords) recent.pop_front();
    return table_.Apply(event);
  }));
  RepairCopies({recent.begin(), recent.end()});
  std::vector<Job*> active;
  for (const auto& [key, job] : table_.jobs()) {
    if (!job->ended()) active.push_back(job.get());
  }
  for (Job* job : active) OC_TRY_VOID(RecoverJob(*job));
  return CompactIfWorthIt();
}

Result<void> Engine::RecoverJob(Job& job) {
  const std::vector<Slot> slots = job.slots;
  if (job.is_array()) OC_TRY_VOID(RepairTaskCounter(job));
  for (const Slot& slot : slots) RecoverSlot(job, slot);
  if (job.ended()) return {};
  Reconsider(job);
  if (job.state == JobState::kRunning) UpdateArrayDemand(job);
  if (job.progress.cancel_requested && !job.slots.empty()) signals_.emplace_back(job.key, SIGTERM);
  if (!job.spec.replaces.empty()) (void)Cancel(job.spec.replaces, StrCat("replaced by ", job.spec.id));
  return {};
}

Result<void> Engine::RepairTaskCounter(const Job& job) {
  if (job.progress.attempt == 0) return {};
  const auto alive = [&](const Slot& slot) {
    auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim"));
    const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
    return claim && claim->by == "agent" && agents_.IsAlive(IdentityOf(*claim));
  };
  if (std::any_of(job.slots.begin(), job.slots.end(), alive))
    return {};  // no power cut, and the counter is in use
  const std::vector<bool> reported = ReportedTasks(job);
  const auto last = std::find(reported.rbegin(), reported.rend(), true);
  const int64_t next = std::max<int64_t>(ReadTaskCounter(job), reported.rend() - last);
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((next >> shift) & 0xFF);
  OC_TRY_VOID(files_.MakeFolders(JobDir(job.spec.id) + "/attempt-1"));
  return files_.WriteAtomic(TaskCounterPath(job), bytes, false);
}

// The allocation is taken back first, so that nothing else can be started on it, then the agent is looked
// for.
void Engine::RecoverSlot(Job& job, const Slot& slot) {
  Running running;
  running.key = job.key;
  running.slot = slot.slot;
  running.priority = job.spec.priority;
  running.resources = job.spec.resources;
  if (job.is_array()) running.resources.time_seconds = 0;
  running.allocation.gpus = slot.gpus;
  running.allocation.cpus = slot.cpus;
  running.started_us = slot.started_us;
  running.next_slot = job.progress.next_slot;
  scheduler_.Adopt(running);
  const AgentToken token{job.key, slot.attempt, slot.slot};
  auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".claim"));
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  if (claim && claim->by == "agent" && agents_.IsAlive(IdentityOf(*claim))) {
    job.FindSlot(slot.attempt, slot.slot)->agent = IdentityOf(*claim);
    if (agents_.Watch(IdentityOf(*claim), token)) return;
  }
  AgentEnded(token);
}

// Copies in job folders are written after the journal: those of the last turn may be missing.
void Engine::RepairCopies(const std::set<std::string>& ids) {
  std::map<std::string, std::string> lines;
  auto text = ids.empty() ? Result<std::string>("") : files_.Read(root_ + "/journal");
  if (!text) return;
  for (const Event& event : SalvageJournal(*text).events) {
    if (!ids.contains(event.id) || table_.Find(event.id) == nullptr) continue;
    if (event.kind != EventKind::kState) lines[event.id] += EventToJson(event, false) + "\n";
  }
  for (const auto& [id, expected] : lines) {
    const std::string path = JobDir(id) + "/events.jsonl";
    auto present = files_.Read(path);
    if (present && present->ends_with(expected)) continue;
    if (files_.MakeFolders(JobDir(id))) (void)files_.WriteAtomic(path, expected, false);
  }
}

Result<void> Engine::CompactIfWorthIt() {
  if (journal_.records() < kSmallJournal) return {};
  const auto jobs = static_cast<int64_t>(table_.jobs().size());
  if (journal_.records() < 2 * (2 * jobs + table_.Count(JobState::kRunning) + 1)) return {};
  OC_TRY_VOID(journal_.Commit());
  std::vector<Event> events = table_.Compact();
  Event machine;
  machine.kind = EventKind::kMachine;
  machine.time_us = clock_.WallUs();
  machine.machine = machine_;
  events.insert(events.begin(), machine);
  return journal_.Rewrite(events);
}

}  // namespace overcap
