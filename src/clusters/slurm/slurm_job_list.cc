// SPDX-License-Identifier: Apache-2.0
// List() and Resolve() of slurm_jobs.h.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "clusters/cluster_view.h"
#include "clusters/slurm/slurm_jobs.h"
#include "model/job_id.h"
#include "model/job_ref.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kEndedShown = 20;
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

// A job that waits, by the queue alone.
JobRecord WaitingRecord(const std::string& id, const std::vector<const SqueueJob*>& rows,
                        const std::string& cluster, const std::string& stale) {
  JobRecord record = ForeignRecord(*rows.front(), cluster);
  record.spec.id = id;
  record.spec.user = UserOfId(id);
  record.attempt = rows.front()->restarts;
  record.stale = stale;
  return record;
}

}  // namespace

struct SlurmJobs::ListWork {
  std::vector<JobRecord> records;
  std::vector<std::string> read;  // to be judged by their folders
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
  std::vector<std::string> known;
  for (const std::string& id : ids) {
    JobRecord unused;
    if (Load(id, &unused)) known.push_back(id);
  }
  auto judged = Query(known, kWatchAgeUs);
  if (!judged) return;
  records->insert(records->end(), std::make_move_iterator(judged->begin()),
                  std::make_move_iterator(judged->end()));
}

Result<std::vector<JobRecord>> SlurmJobs::List(const JobFilter& filter) {
  const auto fresh = queue_.Refresh(kWatchAgeUs);
  std::unordered_set<std::string> open;
  for (std::string& id : index_.OpenIds()) open.insert(std::move(id));
  ListWork work;
  std::unordered_map<std::string, std::vector<const SqueueJob*>> waiting;
  std::unordered_set<std::string> seen;
  const std::string& name = context_->settings().name;
  for (const SqueueJob& row : queue_.rows()) {
    const bool mine = queue_.IsMine(row);
    if (!mine && (filter.user.empty() || row.user != filter.user)) continue;
    const SlurmState state = ReadSlurmState(row.raw_state, row.raw_reason);
    std::string id(mine ? IdOfSlurmComment(row.comment) : std::string_view());
    const bool ours = IsJobId(id) && (open.contains(id) || Folder(id).Exists());
    if (!ours) {
      if (state.ended) continue;
      work.records.push_back(ForeignRecord(row, name));
      work.records.back().stale = queue_.stale();
      continue;
    }
    if (state.state == JobState::kQueued || state.state == JobState::kHeld) {
      waiting[id].push_back(&row);
    } else if (seen.insert(id).second) {
      work.read.push_back(id);
    }
  }
  const bool by_rows = filter.detail == ListDetail::kTable && waiting.size() > kWaitingRead;
  for (auto& [id, rows] : waiting) {
    if (seen.contains(id)) continue;
    seen.insert(id);
    if (by_rows) {
      work.records.push_back(WaitingRecord(id, rows, name, queue_.stale()));
    } else {
      work.read.push_back(id);
    }
  }
  for (const std::string& id : open) {
    if (seen.insert(id).second) work.read.push_back(id);
  }
  const std::vector<std::string> ended = WantsEnded(filter) ? AllIds() : index_.LastEnded(2 * kEndedShown);
  for (const std::string& id : ended) {
    if (seen.insert(id).second) work.read.push_back(id);
  }
  JudgeList(work.read, &work.records);
  if (!fresh && work.records.empty()) return Fail(fresh.error());
  if (work.records.empty() && !queue_.stale().empty())
    return Fail(ErrorCode::kUnavailable, StrCat("there were no jobs ", queue_.stale()));
  std::erase_if(work.records, [&](const JobRecord& job) { return !Matches(job, filter); });
  if (!filter.all && filter.states.empty() && filter.since_us == 0) KeepRecent(&work.records);
  std::stable_sort(work.records.begin(), work.records.end(), [](const JobRecord& a, const JobRecord& b) {
    return a.spec.submitted_us < b.spec.submitted_us;
  });
  return std::move(work.records);
}

Result<std::vector<std::string>> SlurmJobs::Resolve(const std::vector<std::string>& refs) {
  std::vector<std::string> ids(refs.size());
  std::vector<std::string> names;
  std::vector<JobRefCandidate> candidates;
  for (size_t i = 0; i < refs.size(); ++i) {
    const std::string& ref = refs[i];
    JobRecord unused;
    if (IsJobId(ref) && Load(ref, &unused)) {
      ids[i] = ref;
      continue;
    }
    if (names.empty()) {
      for (std::string& id : AllIds()) {
        const auto spec = Folder(id).Spec();
        if (spec && spec->cluster == context_->settings().name) names.push_back(std::move(id));
      }
      for (const std::string& id : names) candidates.push_back({id, SecondsOfId(id) * 1'000'000, {}});
    }
    auto id = ResolveJobRef(ref, candidates, [&](std::string_view of) {
      const auto spec = Folder(std::string(of)).Spec();
      return spec ? ShellJoin(spec->command) : std::string();
    });
    if (!id && IsSlurmNumber(ref)) {
      OC_TRY_VOID(queue_.Refresh(0));
      if (auto foreign = Foreign(ref)) {
        ids[i] = ref;
        continue;
      }
    }
    if (!id) return Fail(std::move(id).error());
    ids[i] = *std::move(id);
  }
  return ids;
}

}  // namespace overcap
