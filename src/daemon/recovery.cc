// SPDX-License-Identifier: Apache-2.0
// How the engine finds its way back after it was stopped, killed, or the machine went down.
#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "daemon/engine.h"
#include "daemon/foreign_folders.h"
#include "model/agent_report.h"
#include "sys/own_host_name.h"

namespace overcap {
namespace {

constexpr int64_t kSmallJournal = 10'000;         // records; not worth a rewrite
constexpr int64_t kSmallJournalBytes = 16 << 20;  // nor is this
constexpr int64_t kLargeJournalBytes = 64 << 20;  // a journal longer than this is rewritten at the start
constexpr size_t kRecentRecords = 1'000;  // more than one turn ever appends: whose copies may be behind

constexpr char kSubmittedLine[] = "{\"e\":\"submitted\"";

}  // namespace

Result<void> Engine::Open() {
  OC_TRY_VOID(files_.MakeFolders(root_ + "/jobs"));
  (void)files_.MakeFolders(root_ +
                           "/trash");  // while there is room for it: a full disk is emptied through it
  OC_TRY_VOID(files_.SyncFolder(root_));
  OC_TRY_VOID(files_.SyncFolder(root_.substr(0, std::max<size_t>(1, root_.rfind('/')))));
  OC_TRY_VOID(CheckJournalIsThere());
  std::deque<Event> recent;
  std::vector<Removal> removed;
  OC_TRY_VOID(ReadJournal(&recent, &removed));
  opened_ = true;
  if (policy_) OC_TRY_VOID(MakeQueue());
  RepairCopies(recent);
  for (const auto& [key, job] : table_.jobs()) {
    for (Slot& slot : job->slots) slot.elsewhere = IsElsewhere(*job, slot);
    if (job->SlotElsewhere() != nullptr) elsewhere_.insert(key);
  }
  std::vector<Job*> active;
  for (const auto& [key, job] : table_.jobs()) {
    if (!job->ended()) active.push_back(job.get());
  }
  recovering_ = true;
  for (Job* job : active) OC_TRY_VOID(RecoverJob(*job));
  recovering_ = false;
  PutOrphansAside();
  FindHalfRemoved(std::move(removed));
  // Only the first rewrite shows how much of it is needed.
  compact_at_bytes_ = std::min(2 * journal_.SizeBytes(), kLargeJournalBytes);
  return CompactIfWorthIt();
}

Result<void> Engine::ReadJournal(std::deque<Event>* recent, std::vector<Removal>* removed) {
  const auto replay = [&](Event event) -> Result<void> {
    if (event.kind == EventKind::kMachine) {
      // What was detected may have changed since; what a configuration declared holds until another one
      // comes.
      SetMachine(event.machine.declared ? event.machine : detected_);
      return {};
    }
    if (event.kind == EventKind::kRemoved) {
      if (const Job* job = table_.Find(event.id); job != nullptr)
        removed->push_back({event.id, job->spec.owner});
    }
    last_record_us_ = std::max(last_record_us_, event.time_us);
    OC_TRY_VOID(table_.Apply(event));
    recent->push_back(std::move(event));
    if (recent->size() > kRecentRecords) recent->pop_front();
    return {};
  };
  return journal_.Open(replay);
}

Result<std::string> Engine::GiveUpHost(std::string_view gone) {
  std::deque<Event> recent;
  std::vector<Removal> removed;
  OC_TRY_VOID(ReadJournal(&recent, &removed));
  std::set<std::string> others;
  std::vector<std::pair<Job*, Slot>> open;
  std::string alive;
  for (const auto& [key, job] : table_.jobs()) {
    for (const Slot& slot : job->slots) {
      const bool of_gone = slot.host == gone || HostNameIn(slot.host) == gone;
      if (of_gone && LiveAgent(*job, slot)) {  // this host had that name then
        alive += StrCat("\njob '", job->spec.id, "', attempt ", slot.attempt,
                        ": it runs on this host, and goes on");
      } else if (of_gone) {
        open.emplace_back(job.get(), slot);
      } else if (!slot.host.empty() && slot.host != agents_.CurrentHost()) {
        others.insert(StrCat("'", HostNameIn(slot.host), "'"));
      }
    }
  }
  std::string report = StrCat("host '", gone, "' is given up: ", CountOf(std::ssize(open), "open slot"));
  for (const auto& [job, slot] : open) {
    OC_TRY_VOID(SlotEnded(*job, {{job->key, slot.attempt, slot.slot}, clock_.WallUs(), true}));
    report +=
        StrCat("\njob '", job->spec.id, "', attempt ", slot.attempt, ": it is ", JobStateName(job->state),
               job->ending.reason.empty() ? "" : StrCat(", ", job->ending.reason));
  }
  report += alive;
  if (!others.empty())
    report += StrCat("\nslots are open on other hosts: ", Join({others.begin(), others.end()}, ", "));
  OC_TRY_VOID(journal_.Commit());
  WriteCopies();
  return report;
}

// A slot whose agent lives here is this host's, whatever the host was called when the slot was started.
bool Engine::IsElsewhere(const Job& job, const Slot& slot) const {
  const std::string here = agents_.CurrentHost();
  return !here.empty() && !slot.host.empty() && slot.host != here && !LiveAgent(job, slot);
}

bool Engine::HasReportedItsEnd(const Job& job, const Slot& slot) const {
  const auto text = files_.Read(AgentFile(job, slot.attempt, slot.slot, ".jsonl"));
  return text && ParseAgentReport(*text).end.has_value();
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
  const auto trash = files_.List(root_ + "/trash");
  if (trash && !trash->empty()) agents_.EmptyTrash({root_ + "/trash", {}, root_, false});
}

// A removal is recorded before it is done, so an engine that was killed in between has left the folder.
void Engine::FindHalfRemoved(std::vector<Removal> removed) {
  for (Removal& removal : removed) {
    if (table_.Find(removal.id) != nullptr) continue;  // submitted again
    if (files_.Exists(StrCat(AreaOf(removal.owner), "/jobs/", removal.id)))
      removals_.push_back(std::move(removal));
  }
}

Result<void> Engine::RecoverJob(Job& job) {
  const std::vector<Slot> slots = job.slots;
  for (const Slot& slot : slots) RecoverSlot(job, slot);
  if (job.is_array() && job.slots.empty()) {
    auto raised = RaiseTaskCounter(job, false);
    if (!raised && !job.spec.owner.told()) return raised;  // what a user has done there holds up nobody
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
  if (still != nullptr && still->agent) SetDeadline(job, *still, agents_.RunningForUs(*still->agent));
}

void Engine::AdoptSlot(const Job& job, const Slot& slot) {
  if (slot.elsewhere) return;  // it uses nothing of this machine
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
    const auto text = files_.Read(path);
    const std::vector<std::string> present = Split(text.value_or(""), '\n');
    const std::set<std::string_view> known(present.begin(), present.end());
    // A rewritten journal repeats old events, and `submitted` may differ from the copy.
    const bool begun = text && text->starts_with(kSubmittedLine);
    size_t there = expected.size();
    const auto is_there = [&](const std::string& line) {
      return known.contains(std::string_view(line).substr(0, line.size() - 1)) ||
             (begun && line.starts_with(kSubmittedLine));
    };
    while (there > 0 && !is_there(expected[there - 1])) --there;
    if (there == expected.size() || !files_.MakeFolders(JobDir(id))) continue;
    const std::string missing =
        Join({expected.begin() + static_cast<std::ptrdiff_t>(there), expected.end()}, "");
    if (auto file = files_.OpenAppend(path)) (void)(*file)->Append(missing);
  }
}

Result<void> Engine::CompactIfWorthIt() {
  const auto jobs = static_cast<int64_t>(table_.jobs().size());
  const int64_t needed = 2 * jobs + table_.Count(JobState::kRunning) + 2;
  // Few records may take many bytes: a user can submit and remove long commands all day.
  const bool many = journal_.records() >= std::max({kSmallJournal, compact_at_, 2 * needed});
  const bool large = journal_.SizeBytes() >= std::max(kSmallJournalBytes, compact_at_bytes_);
  if (!many && !large) return {};
  if (!later_removals_.empty()) return {};  // only the journal remembers them
  // If it fails now, it is not tried in every turn.
  compact_at_ = journal_.records() + kSmallJournal;
  compact_at_bytes_ = journal_.SizeBytes() + kSmallJournalBytes;
  OC_TRY_VOID(journal_.Commit());
  std::vector<Event> events = table_.Compact();
  Event machine;
  machine.kind = EventKind::kMachine;
  machine.time_us = clock_.WallUs();
  machine.machine = machine_;
  events.insert(events.begin(), machine);
  auto rewritten = journal_.Rewrite(events);
  // The journal may grow to twice what is needed, so that a rewrite costs no more than what was written
  // since.
  if (rewritten) compact_at_bytes_ = 2 * journal_.SizeBytes();
  // On a full disk the old journal serves on.
  if (!rewritten && rewritten.error().code == ErrorCode::kUnavailable) return {};
  return rewritten;
}

}  // namespace overcap
