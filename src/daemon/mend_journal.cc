// SPDX-License-Identifier: Apache-2.0
#include "daemon/mend_journal.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "daemon/job_table.h"

namespace overcap {
namespace {

// A record of one job with its place in the new journal.
struct Entry {
  Event event;
  int64_t place = 0;
  int64_t line = 0;  // of the old journal; 0: it comes from elsewhere
};
using History = std::vector<Entry>;

struct Fold {
  JobTable table;
  History kept;
  std::vector<std::string> left_out;
  bool met = true;  // the history went through the state of `through`
};

// Whether the job is as `state` has it, in all that its history must show as well.
bool Shows(const Job& job, const Event& state) {
  JobProgress progress = job.progress;
  progress.preemptions = state.progress.preemptions;
  return job.state == state.ending.state && progress == state.progress;
}

// `through`: a `state` record that the history must reproduce on its way; may be null.
Fold FoldOf(const History& history, const Event* through = nullptr) {
  Fold fold;
  fold.met = through == nullptr;
  for (const Entry& entry : history) {
    if (auto applied = fold.table.Apply(entry.event)) {
      fold.kept.push_back(entry);
    } else {
      fold.left_out.push_back(StrCat(entry.line > 0 ? StrCat("line ", entry.line) : "a record of its folder",
                                     " is left out: ", applied.error().message));
    }
    const Job* job = fold.met ? nullptr : fold.table.Find(entry.event.id);
    if (job != nullptr && Shows(*job, *through)) fold.met = true;
  }
  return fold;
}

const Entry* FindKind(const History& history, EventKind kind) {
  const auto at = std::find_if(history.begin(), history.end(),
                               [kind](const Entry& entry) { return entry.event.kind == kind; });
  return at == history.end() ? nullptr : &*at;
}

// Both are parts of the same history in its order. Merges them at the events that they share.
History Merge(const History& own, const std::vector<Event>& copies) {
  History merged;
  size_t at = 0;
  for (const Event& copy : copies) {
    size_t same = at;
    while (same < own.size() && own[same].event != copy) ++same;
    if (same < own.size()) {
      for (; at <= same; ++at) merged.push_back(own[at]);
      continue;
    }
    const int64_t place = merged.empty() ? 0 : merged.back().place;
    merged.push_back({copy, place, 0});
  }
  merged.insert(merged.end(), own.begin() + static_cast<std::ptrdiff_t>(at), own.end());
  return merged;
}

Event MakeEvent(EventKind kind, const std::string& id, int64_t time_us) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.time_us = time_us;
  return event;
}

Event SubmittedAs(const JobSpec& spec) {
  Event event = MakeEvent(EventKind::kSubmitted, spec.id, spec.submitted_us);
  event.spec = spec;
  return event;
}

Event StartOf(const std::string& id, const SlotTrace& slot, const Job& job) {
  Event event = MakeEvent(
      EventKind::kStarted, id,
      slot.started_us > 0 ? slot.started_us : std::max(job.progress.started_us, job.spec.submitted_us));
  event.attempt = slot.attempt;
  event.slot = slot.slot;
  event.boot_id = slot.boot_id;
  event.host = slot.host;
  event.nodes = job.spec.resources.elastic() ? job.spec.resources.nodes : 1;
  if (!job.is_array()) event.gpus = job.last_gpus;
  return event;
}

class Mender {
 public:
  Mender(const SalvagedJournal& salvaged,
         const std::function<std::optional<JobTrace>(const std::string& id)>& trace_of, int64_t now_us)
      : salvaged_(salvaged), trace_of_(trace_of), now_us_(now_us) {
    for (const auto& record : salvaged_.records) {
      const Event& event = record.event;
      if (event.kind == EventKind::kMachine) {
        all_.push_back({event, record.place, record.line});
        continue;
      }
      auto [found, added] = histories_.try_emplace(event.id);
      if (added) ids_.push_back(event.id);
      found->second.push_back({event, record.place, record.line});
      last_place_ = std::max(last_place_, record.place);
      if (event.kind == EventKind::kSubmitted) submits_.emplace_back(event.spec.submitted_us, record.place);
    }
  }

  bool NothingToMend() const {
    return !salvaged_.damaged() && std::all_of(histories_.begin(), histories_.end(), [](const auto& entry) {
      return FoldOf(entry.second).left_out.empty();
    });
  }

  MendedJournal Mend(const std::vector<std::string>& folders) {
    NoteLines();
    for (const std::string& id : ids_) MendJob(id);
    for (const std::string& id : folders) {
      if (!histories_.contains(id)) Rebuild(id);
    }
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Entry& a, const Entry& b) { return a.place < b.place; });
    Check();
    return std::move(mended_);
  }

 private:
  void Note(std::string text) { mended_.notes.push_back(std::move(text)); }

  void NoteLines() {
    for (const auto& [line, why] : salvaged_.bad_lines) Note(StrCat("line ", line, " is left out: ", why));
    for (const int64_t line : salvaged_.doubled_lines)
      Note(StrCat("line ", line, " is left out: it is a duplicate"));
    if (salvaged_.moved > 0) Note("records that stood in a wrong order were put back into theirs");
    const auto lost = salvaged_.missing - static_cast<int64_t>(salvaged_.bad_lines.size());
    if (lost > 0) Note(StrCat(lost, lost == 1 ? " record is" : " records are", " missing"));
  }

  // A job of which the journal has records.
  void MendJob(const std::string& id) {
    const History& own = histories_[id];
    Fold plain = FoldOf(own);
    if (FindKind(own, EventKind::kRemoved) != nullptr) return Take(std::move(plain));
    const auto trace = trace_of_(id);
    if (!trace) {
      const Job* job = plain.table.Find(id);
      // The engine makes the folder before the record: a job that waits or runs without one has lost its
      // files.
      if (job != nullptr && !job->ended()) EndAsLost(id, &plain, "its folder is gone");
      return Take(std::move(plain));
    }
    Fold best = Choose(id, own, std::move(plain), *trace);
    Reopen(id, *trace, &best);
    if (FindKind(own, EventKind::kSubmitted) == nullptr) Prove(id, *trace, &best);
    Take(std::move(best));
  }

  // The records of the journal, together with the copies in the folder if these fit.
  Fold Choose(const std::string& id, const History& own, Fold plain, const JobTrace& trace) {
    const Entry* submitted = FindKind(own, EventKind::kSubmitted);
    const Entry* state = FindKind(own, EventKind::kState);
    History rest;
    for (const Entry& entry : own) {
      const EventKind kind = entry.event.kind;
      if (kind != EventKind::kSubmitted && kind != EventKind::kState) rest.push_back(entry);
    }
    std::optional<Entry> first;
    if (submitted != nullptr) first = *submitted;
    if (!first && trace.spec) first = Entry{SubmittedAs(*trace.spec), PlaceOf(*trace.spec, own), 0};
    if (!first) return plain;
    if (submitted == nullptr) {
      History with_spec = own;
      with_spec.insert(with_spec.begin(), *first);
      plain = FoldOf(with_spec);
    }
    History merged = Merge(rest, trace.events);
    merged.insert(merged.begin(), *first);
    for (Entry& entry : merged) entry.place = std::max(entry.place, first->place);
    Fold filled = FoldOf(merged, state == nullptr ? nullptr : &state->event);
    const Job* before = plain.table.Find(id);
    const Job* after = filled.table.Find(id);
    const bool same_end = before == nullptr || !before->ended() ||
                          (after != nullptr && after->ending == before->ending &&
                           after->progress.ended_us == before->progress.ended_us);
    if (!filled.left_out.empty() || !filled.met || !same_end) return plain;
    const auto added = std::count_if(filled.kept.begin(), filled.kept.end(),
                                     [](const Entry& entry) { return entry.line == 0; });
    // The copies say nothing new if a rewrite of the journal had put them all into its `state` record.
    if (state != nullptr && before != nullptr && after != nullptr && before->state == after->state &&
        before->progress == after->progress && before->slots.size() == after->slots.size() &&
        plain.left_out.empty())
      return plain;
    if (added > 0) Note(StrCat("job '", id, "': ", CountOf(added, "record"), " taken from its folder"));
    return filled;
  }

  // A slot that an agent has claimed was started, also without a record: the engine then looks how it ended.
  void Reopen(const std::string& id, const JobTrace& trace, Fold* fold) {
    for (const SlotTrace& slot : trace.slots) {
      const Job* job = fold->table.Find(id);
      if (job == nullptr || job->ended() || job->state == JobState::kHeld) return;
      const bool lost_slot = job->state == JobState::kRunning && job->slots.empty() &&
                             job->last_attempt.state == JobState::kUnknown;
      const bool unknown =
          job->is_array()
              ? slot.slot >= job->progress.next_slot || (lost_slot && !slot.ended)
              : slot.attempt > job->progress.attempt || (lost_slot && slot.attempt == job->progress.attempt);
      if (!unknown || (!job->is_array() && !job->slots.empty())) continue;
      Append(fold, StartOf(id, slot, *job));
      Note(StrCat("job '", id, "': attempt ", slot.attempt, " had been started, and its record was lost"));
    }
    const Job* job = fold->table.Find(id);
    const bool nowhere = job != nullptr && job->state == JobState::kRunning && job->slots.empty() &&
                         job->last_attempt.state == JobState::kUnknown;
    if (!nowhere || job->is_array()) return;
    SlotTrace slot;  // without a trace: the engine will find no agent
    slot.attempt = std::max(1, job->progress.attempt);
    slot.slot = std::max(0, job->progress.next_slot - 1);
    Append(fold, StartOf(id, slot, *job));
  }

  // A job that is known from its folder alone is queued only if it is certain that it never started.
  void Prove(const std::string& id, const JobTrace& trace, Fold* fold) {
    const Job* job = fold->table.Find(id);
    if (job == nullptr)
      return Note(StrCat("job '", id, "' has no record and no readable spec.json; its folder stays"));
    const bool waits = job->state == JobState::kQueued || job->state == JobState::kHeld;
    if (waits && !trace.complete)
      EndAsLost(id, fold, "its record was lost, and nothing proves that it never started");
    job = fold->table.Find(id);
    Note(StrCat("job '", id, "' is rebuilt from its folder: ", JobStateName(job->state)));
  }

  void Rebuild(const std::string& id) {
    const auto trace = trace_of_(id);
    if (!trace) return;
    Fold fold = Choose(id, {}, {}, *trace);
    Reopen(id, *trace, &fold);
    Prove(id, *trace, &fold);
    Take(std::move(fold));
  }

  void EndAsLost(const std::string& id, Fold* fold, std::string_view why) {
    Event ended = MakeEvent(EventKind::kEnded, id, now_us_);
    ended.ending.state = JobState::kLost;
    ended.ending.reason = StrCat(why, "; to run it again: overcap resubmit ", id);
    Append(fold, ended);
    Note(StrCat("job '", id, "' is lost: ", ended.ending.reason));
  }

  static void Append(Fold* fold, const Event& event) {
    const int64_t place = fold->kept.empty() ? 0 : fold->kept.back().place;
    if (fold->table.Apply(event)) fold->kept.push_back({event, place, 0});
  }

  // The place before the first job that was submitted later, so that the job keeps its turn.
  int64_t PlaceOf(const JobSpec& spec, const History& own) const {
    int64_t place = own.empty() ? last_place_ : own.front().place;
    for (const auto& [submitted_us, at] : submits_) {
      if (submitted_us > spec.submitted_us) place = std::min(place, at - 1);
    }
    return place;
  }

  void Take(Fold fold) {
    for (std::string& text : fold.left_out) Note(std::move(text));
    all_.insert(all_.end(), fold.kept.begin(), fold.kept.end());
  }

  // Applies all events together, as the engine will.
  void Check() {
    JobTable table;
    for (Entry& entry : all_) {
      if (entry.event.kind != EventKind::kMachine) {
        if (auto applied = table.Apply(entry.event); !applied) {
          Note(StrCat("left out: ", applied.error().message));
          continue;
        }
      }
      mended_.events.push_back(std::move(entry.event));
    }
    mended_.changed = true;
  }

  const SalvagedJournal& salvaged_;
  const std::function<std::optional<JobTrace>(const std::string& id)>& trace_of_;
  int64_t now_us_;
  std::vector<std::string> ids_;  // in the order of their first record
  std::map<std::string, History> histories_;
  std::vector<std::pair<int64_t, int64_t>> submits_;  // when, place
  int64_t last_place_ = 0;
  History all_;
  MendedJournal mended_;
};

}  // namespace

MendedJournal MendJournal(const SalvagedJournal& salvaged, const std::vector<std::string>& folders,
                          const std::function<std::optional<JobTrace>(const std::string& id)>& trace_of,
                          int64_t now_us) {
  Mender mender(salvaged, trace_of, now_us);
  if (mender.NothingToMend()) return {};
  return mender.Mend(folders);
}

}  // namespace overcap
