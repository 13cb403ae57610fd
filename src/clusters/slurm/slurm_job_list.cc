// SPDX-License-Identifier: Apache-2.0
// List() and Resolve() of slurm_jobs.h.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/text.h"
#include "clusters/cluster_view.h"
#include "clusters/slurm/slurm_jobs.h"
#include "model/job_id.h"
#include "model/job_ref.h"
#include "sys/large_heap.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kListBytes = 16 << 20;  // the text of a long queue, and what is made of it
constexpr size_t kEndedShown = 20;
constexpr size_t kMostCompared = 200;
constexpr size_t kMostForLast = 16;  // whose numbers are read
constexpr int64_t kNumbersBegunAgain = int64_t{1} << 25;
constexpr size_t kWaitingRead = 50;  // so many jobs that wait are read from their folders for a table

bool Matches(const JobRecord& job, const JobFilter& filter) {
  if (!filter.user.empty() && job.spec.user != filter.user) return false;
  if (filter.since_us > 0 && std::max(job.spec.submitted_us, job.ended_us) < filter.since_us) return false;
  return filter.states.empty() ||
         std::find(filter.states.begin(), filter.states.end(), job.state) != filter.states.end();
}

bool WantsEnded(const JobFilter& filter) {
  return filter.all || filter.since_us > 0 ||
         std::any_of(filter.states.begin(), filter.states.end(),
                     [](JobState state) { return IsFinal(state); });
}

void KeepRecent(std::vector<JobRecord>* jobs) {
  std::vector<int64_t> ends;
  for (const JobRecord& job : *jobs) {
    if (IsFinal(job.state)) ends.push_back(job.ended_us);
  }
  if (ends.size() <= kEndedShown) return;
  std::nth_element(ends.begin(), ends.begin() + kEndedShown - 1, ends.end(), std::greater<>());
  const int64_t oldest = ends[kEndedShown - 1];
  size_t left = kEndedShown;
  std::erase_if(*jobs, [&](const JobRecord& job) {
    if (!IsFinal(job.state)) return false;
    if (job.ended_us < oldest || left == 0) return true;
    --left;
    return false;
  });
}

std::string_view UserOfId(std::string_view id) {
  return id.substr(0, id.find('_'));
}

int64_t SecondsOfId(std::string_view id) {
  const size_t first = id.find('_'), second = id.rfind('_');
  return ParseInt(id.substr(first + 1, second - first - 1)).value_or(0);
}

// What a table shows of a job, by the queue alone. Rows that follow each other mostly wait for the same.
class RowReader {
 public:
  RowReader(const std::string& cluster, const std::string& stale) : cluster_(cluster), stale_(stale) {
    plain_.spec.cluster = cluster;
    plain_.stale = stale;
  }

  const SlurmState& StateOf(const SqueueRow& row) {
    if (row.state() != raw_state_ || row.reason() != raw_reason_) {
      raw_state_ = row.state(), raw_reason_ = row.reason();
      state_ = ReadSlurmState(raw_state_, raw_reason_);
    }
    return state_;
  }

  // `id`: ours; "": it is not ours. Valid until the next call.
  const JobRecord& Read(const SqueueRow& row, std::string_view id) {
    JobRecord& record = row.is_array() ? array_ : plain_;
    if (row.is_array()) {
      record = ForeignRecord(row.Parse(), cluster_);
      record.stale = stale_;
    } else {
      ReadPlain(row);
    }
    if (id.empty()) return record;
    record.spec.id = id;
    record.spec.user = UserOfId(id);
    return record;
  }

 private:
  static std::string Name(std::string_view name) {
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c < 0x7F; });
    return plain ? std::string(name) : ToUtf8(name);
  }

  // Everything that differs between rows: the record is used for all of them.
  void ReadPlain(const SqueueRow& row) {
    const SlurmState& state = StateOf(row);
    plain_.spec.id = std::to_string(row.job_id());
    plain_.spec.user = row.user();
    plain_.spec.name = Name(row.name());
    plain_.spec.submitted_us = row.submit_us();
    plain_.spec.resources.gpus = row.gpus();
    plain_.spec.resources.nodes = std::max(1, row.nodes());
    plain_.state = state.state;
    plain_.raw_state = row.state();
    plain_.reason = state.reason;
    const bool runs = state.state == JobState::kRunning;
    plain_.restarts = row.restarts();
    plain_.attempt = plain_.restarts + (runs ? 1 : 0);
    plain_.started_us = runs ? row.start_us() : 0;
  }

  const std::string& cluster_;
  const std::string& stale_;
  std::string_view raw_state_, raw_reason_;
  SlurmState state_;
  JobRecord plain_, array_;
};

bool Waits(JobState state) {
  return state == JobState::kQueued || state == JobState::kHeld;
}

}  // namespace

// What goes into a list: rows that are taken as they are, and jobs whose folders are read.
struct SlurmJobs::ListWork {
  struct Taken {
    const SqueueRow* row = nullptr;
    int64_t submitted_us = 0;
    std::string_view id;  // "": not ours
  };
  std::vector<Taken> taken;
  // Of arrays that have not ended: reading thousands of reports for one line of a table would be too much.
  std::map<std::string_view, std::vector<const SqueueRow*>> arrays;
  std::vector<std::string> read;
  std::vector<std::string> open, ended;       // as the index tells them
  std::unordered_set<std::string_view> seen;  // views of rows and of these
};

std::vector<std::string> SlurmJobs::AllIds() const {
  std::vector<std::string> ids;
  const auto names = PosixFiles().List(context_->settings().root + "/jobs");
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (IsJobId(name)) ids.push_back(name);
  }
  return ids;
}

// Those that are not of this cluster, or were removed meanwhile, are left out.
void SlurmJobs::JudgeList(const std::vector<std::string>& ids, std::vector<JobRecord>* records) {
  std::vector<std::string> missing;
  auto judged = Query(ids, kWatchAgeUs, &missing);
  if (!judged) return;
  for (const std::string& id : missing) index_.ForgetOld(id, context_->clock().WallUs());
  for (JobRecord& record : *judged) {
    if (!record.spec.id.empty()) records->push_back(std::move(record));
  }
}

std::optional<JobRecord> SlurmJobs::ArrayRow(const std::string& id,
                                             const std::vector<const SqueueRow*>& rows) {
  auto spec = Folder(id).Spec();
  if (!spec || Folder(id).stranger()) return std::nullopt;
  JobRecord record;
  record.started_us = Folder(id).ArrayBeganUs();  // of tasks that have ended the queue says nothing
  for (const SqueueRow* row : rows) {
    const SlurmState state = ReadSlurmState(row->state(), row->reason());
    if (record.state == JobState::kRunning && state.state != JobState::kRunning) continue;
    record.state = state.state;
    record.raw_state = row->state();
    record.reason = state.reason;
    if (state.state != JobState::kRunning) continue;
    const int64_t start_us = row->start_us();
    if (record.started_us == 0 || start_us < record.started_us) record.started_us = start_us;
    record.attempt = 1;
  }
  record.spec = *std::move(spec);
  record.dir = Folder(id).path();
  record.stale = queue_.stale();
  return record;
}

void SlurmJobs::SortRows(const JobFilter& filter, ListWork* work) {
  RowReader reader(context_->settings().name, queue_.stale());
  work->open = index_.OpenIds();
  const std::unordered_set<std::string_view> open(work->open.begin(), work->open.end());
  std::vector<ListWork::Taken> waiting;
  for (const SqueueRow& row : queue_.rows()) {
    const SlurmState& state = reader.StateOf(row);
    const std::string_view id = IdOfSlurmComment(row.comment());
    const bool is_open = open.contains(id);
    const bool ours = is_open || (IsJobId(id) && Folder(std::string(id)).Exists());
    if (!ours) {
      if (!state.ended) work->taken.push_back({&row, row.submit_us(), {}});
    } else if (!is_open) {  // ended by its own account, since the queue was read
      if (work->seen.insert(id).second) work->read.emplace_back(id);
    } else if (row.is_array() && !state.ended && filter.detail == ListDetail::kTable) {
      work->arrays[id].push_back(&row);
    } else if (Waits(state.state) && !row.is_array()) {
      waiting.push_back({&row, row.submit_us(), id});
    } else if (work->seen.insert(id).second) {
      work->read.emplace_back(id);
    }
  }
  for (const auto& [id, rows] : work->arrays) work->seen.insert(id);
  std::erase_if(work->read, [&](const std::string& id) { return work->arrays.contains(id); });
  const bool by_rows = filter.detail == ListDetail::kTable && waiting.size() > kWaitingRead;
  for (const ListWork::Taken& job : waiting) {
    if (!work->seen.insert(job.id).second) continue;
    if (by_rows) {
      work->taken.push_back(job);
    } else {
      work->read.emplace_back(job.id);
    }
  }
  work->ended = WantsEnded(filter) ? AllIds() : index_.LastEnded(2 * kEndedShown);
  for (const auto* ids : {&work->open, &work->ended}) {
    for (const std::string& id : *ids) {
      if (work->seen.insert(id).second) work->read.push_back(id);
    }
  }
}

// Those that need more than their row, in the order of submission.
std::vector<JobRecord> SlurmJobs::ReadRecords(const ListWork& work, const JobFilter& filter) {
  std::vector<JobRecord> records;
  for (const auto& [id, rows] : work.arrays) {
    if (auto record = ArrayRow(std::string(id), rows)) records.push_back(*std::move(record));
  }
  JudgeList(work.read, &records);
  std::erase_if(records, [&](const JobRecord& job) { return !Matches(job, filter); });
  if (!filter.all && filter.states.empty() && filter.since_us == 0) KeepRecent(&records);
  std::stable_sort(records.begin(), records.end(), [](const JobRecord& a, const JobRecord& b) {
    return a.spec.submitted_us < b.spec.submitted_us;
  });
  return records;
}

Result<void> SlurmJobs::ForEach(const JobFilter& filter, const std::function<void(const JobRecord&)>& take) {
  if (!queue_.known()) ExpectLargeHeap(kListBytes);
  const auto fresh = queue_.Refresh(kWatchAgeUs);
  ListWork work;
  SortRows(filter, &work);
  const bool others = !filter.user.empty() && filter.user != queue_.user();
  const std::vector<SqueueRow> foreign = others ? queue_.RowsOf(filter.user) : std::vector<SqueueRow>();
  RowReader reader(context_->settings().name, queue_.stale());
  for (const SqueueRow& row : foreign) {
    if (!reader.StateOf(row).ended) work.taken.push_back({&row, row.submit_us(), {}});
  }
  // None of these has ended.
  std::stable_sort(
      work.taken.begin(), work.taken.end(),
      [](const ListWork::Taken& a, const ListWork::Taken& b) { return a.submitted_us < b.submitted_us; });
  const std::vector<JobRecord> records = ReadRecords(work, filter);
  if (!fresh && records.empty() && work.taken.empty()) return Fail(fresh.error());
  auto next = records.begin();
  for (const ListWork::Taken& job : work.taken) {
    for (; next != records.end() && next->spec.submitted_us < job.submitted_us; ++next) take(*next);
    const JobRecord& record = reader.Read(*job.row, job.id);
    if (Matches(record, filter)) take(record);
  }
  for (; next != records.end(); ++next) take(*next);
  return {};
}

Result<std::vector<JobRecord>> SlurmJobs::List(const JobFilter& filter) {
  std::vector<JobRecord> records;
  OC_TRY_VOID(ForEach(filter, [&](const JobRecord& record) { records.push_back(record); }));
  return records;
}

// The names of this cluster's jobs are all that a suffix is compared with; of those that it fits the folders
// are read.
Result<std::vector<std::string>> SlurmJobs::Resolve(const std::vector<std::string>& refs) {
  std::vector<std::string> ids;
  std::optional<std::vector<std::string>> all;
  for (const std::string& ref : refs) {
    JobRecord unused;
    if (IsJobId(ref) && Load(ref, &unused)) {
      ids.push_back(ref);
      continue;
    }
    if (!all) all = AllIds();
    OC_TRY(id, ResolveOne(ref, *all));
    ids.push_back(std::move(id));
  }
  return ids;
}

// `known` is in the order of the submitting hosts' clocks, which may differ or have been set. Slurm's numbers
// follow the order in which it took the jobs, and begin again once they are used up. A job without a number
// is still being sent.
void SlurmJobs::MoveLatestNumberLast(std::vector<std::pair<std::string, JobSpec>>* known) const {
  if (known->empty()) return;
  const auto newest = Folder(known->back().first).Handle();
  if (!newest) return;
  size_t latest = known->size() - 1;
  int64_t number = newest->slurm_id;
  for (size_t i = latest; i-- > 0;) {
    const auto handle = Folder((*known)[i].first).Handle();
    if (!handle || handle->slurm_id <= number || handle->slurm_id - number > kNumbersBegunAgain) continue;
    number = handle->slurm_id;
    latest = i;
  }
  std::rotate(known->begin() + static_cast<int64_t>(latest),
              known->begin() + static_cast<int64_t>(latest) + 1, known->end());
}

// Newest first, so that few folders need to be read.
Result<std::string> SlurmJobs::ResolveOne(const std::string& ref, const std::vector<std::string>& all) {
  const bool last = ref == "last";
  if (const size_t plus = ref.find('+'); plus != std::string::npos && IsSlurmNumber(ref.substr(0, plus)))
    return Fail(ErrorCode::kUsage,
                StrCat("'", ref, "' is a part of Slurm's heterogeneous job ", ref.substr(0, plus),
                       ", and Overcap shows no parts"),
                StrCat("squeue -j ", ref, " and scontrol show job ", ref, " show it"));
  std::vector<std::pair<std::string, JobSpec>> known;
  int64_t newest_s = 0;
  const auto take = [&](const std::string& id) {
    auto spec = Folder(id).Spec();
    if (last && Folder(id).stranger()) return false;
    if (!spec || spec->cluster != context_->settings().name) return false;
    known.emplace_back(id, *std::move(spec));
    return true;
  };
  std::vector<std::string> order = all;
  std::sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) {
    return std::pair(SecondsOfId(a), std::string_view(a)) > std::pair(SecondsOfId(b), std::string_view(b));
  });
  for (const std::string& id : order) {
    if (last && known.size() >= kMostForLast && SecondsOfId(id) < newest_s) break;
    if ((last || id.ends_with(ref)) && take(id)) newest_s = std::max(newest_s, SecondsOfId(id));
  }
  if (IsSlurmNumber(ref)) {
    OC_TRY(numbered, ResolveNumber(ref));
    if (!numbered.empty() && (known.empty() || (known.size() == 1 && known[0].first == numbered)))
      return numbered;
  }
  // Nothing fits: a slip of the fingers is compared with what was submitted lately.
  for (size_t i = 0; known.empty() && i < std::min(order.size(), kMostCompared); ++i) (void)take(order[i]);
  std::stable_sort(known.begin(), known.end(), [](const auto& a, const auto& b) {
    return a.second.submitted_us < b.second.submitted_us;
  });
  if (last) MoveLatestNumberLast(&known);
  std::vector<JobRefCandidate> candidates;
  for (const auto& [id, spec] : known) candidates.push_back({id, spec.name});
  return ResolveJobRef(ref, candidates, [&](std::string_view of) {
    const auto found =
        std::find_if(known.begin(), known.end(), [&](const auto& job) { return job.first == of; });
    return ShellJoin(found->second.command);
  });
}

// Which job a number of Slurm's is; "": none of this user's.
Result<std::string> SlurmJobs::ResolveNumber(const std::string& ref) {
  OC_TRY_VOID(queue_.Refresh(0));
  const int64_t number = ParseInt(ref.substr(0, ref.find('_'))).value_or(0);
  for (const SqueueJob* row : queue_.RowsOfNumber(number)) {
    const std::string id(IdOfSlurmComment(row->comment));
    JobRecord unused;
    if (IsJobId(id) && Load(id, &unused)) return id;
  }
  if (Foreign(ref)) return ref;
  return std::string();
}

}  // namespace overcap
