// SPDX-License-Identifier: Apache-2.0
// How the engine finds its way back after it was stopped, killed, or the machine went down.
#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "daemon/engine.h"
#include "daemon/foreign_folders.h"

namespace overcap {
namespace {

constexpr int64_t kSmallJournal = 10'000;  // records; not worth a rewrite
constexpr size_t kRecentRecords = 1'000;   // more than one turn ever appends: whose copies may be behind

// The agents of an elastic job write beside the engine what happens to their group.
Result<std::string> WithoutGroupLines(Result<std::string> text) {
  if (!text) return text;
  std::string own;
  for (const std::string& line : Split(*text, '\n')) {
    if (!line.empty() && !line.starts_with("{\"e\":\"group\"")) own += line + "\n";
  }
  return own;
}

}  // namespace

Result<void> Engine::Open() {
  OC_TRY_VOID(files_.MakeFolders(root_ + "/jobs"));
  OC_TRY_VOID(files_.SyncFolder(root_));
  OC_TRY_VOID(files_.SyncFolder(root_.substr(0, std::max<size_t>(1, root_.rfind('/')))));
  OC_TRY_VOID(CheckJournalIsThere());
  std::deque<Event> recent;
  const auto replay = [&](Event event) -> Result<void> {
    if (event.kind == EventKind::kMachine) {
      // What was detected may have changed since; what a configuration declared holds until another one
      // comes.
      SetMachine(event.machine.declared ? event.machine : detected_);
      return {};
    }
    OC_TRY_VOID(table_.Apply(event));
    recent.push_back(std::move(event));
    if (recent.size() > kRecentRecords) recent.pop_front();
    return {};
  };
  OC_TRY_VOID(journal_.Open(replay));
  opened_ = true;
  if (policy_) OC_TRY_VOID(MakeQueue());
  RepairCopies(recent);
  std::vector<Job*> active;
  for (const auto& [key, job] : table_.jobs()) {
    if (!job->ended()) active.push_back(job.get());
  }
  for (Job* job : active) OC_TRY_VOID(RecoverJob(*job));
  PutOrphansAside();
  return CompactIfWorthIt();
}

// A journal that is gone while jobs are there is a loss, not a beginning.
Result<void> Engine::CheckJournalIsThere() {
  const auto text = files_.ReadRange(root_ + "/journal", 0, 1);
  if (text) return {};
  if (text.error().code != ErrorCode::kNotFound) return Fail(text.error());
  OC_TRY_VOID(files_.List(root_ + "/jobs"));
  std::vector<std::string> jobs = ForeignFolders(files_, root_).OwnIds();
  // An engine of many users has theirs elsewhere, and a claim for each that was ever started.
  if (jobs.empty()) jobs = files_.List(root_ + "/claims").value_or(std::vector<std::string>());
  if (jobs.empty()) return {};
  return Fail(ErrorCode::kCorrupt,
              StrCat("journal '", root_, "/journal' is missing, but there are ", jobs.size(), " job folders"),
              "bring it back from a backup, or type 'overcap daemon recover' to begin a new one beside them");
}

// Folders of submits that were cut off before they were recorded (and so never answered), and what was being
// removed.
void Engine::PutOrphansAside() {
  const ForeignFolders foreign(files_, root_);
  const auto ids = files_.List(root_ + "/jobs");
  for (const std::string& id : ids ? *ids : std::vector<std::string>()) {
    const bool orphan = table_.Find(id) == nullptr && !files_.Exists(JobDir(id) + "/attempt-1");
    if (orphan && files_.Exists(JobDir(id) + "/spec.json") && !foreign.Has(id)) removals_.push_back({id, {}});
  }
  if (files_.Exists(root_ + "/trash")) agents_.EmptyTrash({root_ + "/trash", {}, root_});
}

Result<void> Engine::RecoverJob(Job& job) {
  const std::vector<Slot> slots = job.slots;
  for (const Slot& slot : slots) RecoverSlot(job, slot);
  if (job.is_array() && job.slots.empty()) {
    auto repaired = RepairTaskCounter(job);
    if (!repaired && !job.spec.owner.told()) return repaired;  // what a user has done there holds up nobody
  }
  if (job.ended()) return {};
  Reconsider(job);
  if (job.state == JobState::kRunning) UpdateArrayDemand(job);
  if (job.progress.cancel_requested && !job.slots.empty()) signals_.emplace_back(job.key, SIGTERM);
  if (!job.spec.replaces.empty()) (void)Cancel(job.spec.replaces, StrCat("replaced by ", job.spec.id));
  return {};
}

// The allocation is taken back first, so that nothing else can be started on it, then the agent is looked
// for.
void Engine::RecoverSlot(Job& job, const Slot& slot) {
  AdoptSlot(job, slot);
  AgentEnded({job.key, slot.attempt, slot.slot});  // watches it when it lives
  const Slot* still = job.FindSlot(slot.attempt, slot.slot);
  if (still != nullptr && still->preemption) RemindSlot(job, *still);
}

void Engine::AdoptSlot(const Job& job, const Slot& slot) {
  Running running;
  running.key = job.key;
  running.slot = slot.slot;
  running.priority = job.spec.priority;
  running.resources = job.spec.resources;
  if (job.is_array()) running.resources.time_seconds = 0;
  running.allocation.gpus = slot.gpus;
  running.allocation.cpus = slot.cpus;
  running.allocation.nodes = slot.nodes;
  running.started_us = slot.started_us;
  running.next_slot = job.progress.next_slot;
  queue().Adopt(running);
}

// Copies in job folders are written after the journal: those of the last turn may be missing.
void Engine::RepairCopies(const std::deque<Event>& recent) {
  std::map<std::string, std::vector<std::string>> lines;
  for (const Event& event : recent) {
    const bool shown = event.kind != EventKind::kState && table_.Find(event.id) != nullptr;
    if (shown) lines[event.id].push_back(EventToJson(event, false) + "\n");
  }
  for (const auto& [id, expected] : lines) {
    const std::string path = JobDir(id) + "/events.jsonl";
    const auto present = WithoutGroupLines(files_.Read(path));
    size_t there = expected.size();  // how many of the expected lines the file ends with
    for (; there > 0; --there) {
      const std::string wanted =
          Join({expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(there)}, "");
      if (present && present->ends_with(wanted)) break;
    }
    if (there == expected.size() || !files_.MakeFolders(JobDir(id))) continue;
    const std::string missing =
        Join({expected.begin() + static_cast<std::ptrdiff_t>(there), expected.end()}, "");
    if (auto file = files_.OpenAppend(path)) (void)(*file)->Append(missing);
  }
}

Result<void> Engine::CompactIfWorthIt() {
  const auto jobs = static_cast<int64_t>(table_.jobs().size());
  const int64_t needed = 2 * jobs + table_.Count(JobState::kRunning) + 2;
  if (journal_.records() < std::max({kSmallJournal, compact_at_, 2 * needed})) return {};
  compact_at_ = journal_.records() + kSmallJournal;  // should it fail now, not in every turn
  OC_TRY_VOID(journal_.Commit());
  std::vector<Event> events = table_.Compact();
  Event machine;
  machine.kind = EventKind::kMachine;
  machine.time_us = clock_.WallUs();
  machine.machine = machine_;
  events.insert(events.begin(), machine);
  auto rewritten = journal_.Rewrite(events);
  // On a full disk the old journal serves on.
  if (!rewritten && rewritten.error().code == ErrorCode::kUnavailable) return {};
  return rewritten;
}

}  // namespace overcap
