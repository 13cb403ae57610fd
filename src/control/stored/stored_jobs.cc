// SPDX-License-Identifier: Apache-2.0
#include "control/stored/stored_jobs.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "clusters/shut_files.h"
#include "control/array_tasks.h"
#include "control/stores/job_stores.h"
#include "model/job_ref.h"
#include "snapshot/sha256.h"
#include "stores/job_files.h"
#include "sys/posix_files.h"
#include "sys/strangers_files.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr int64_t kPauseMs = 500;

tl::unexpected<Error> OnlyRead(const std::string& name) {
  return Fail(ErrorCode::kUsage, StrCat("jobs in '", name, "' can only be read from here"),
              "ask the cluster that runs them, without --from");
}

void CountTasks(JobRecord* record) {
  TaskCounts& counts = record->tasks;
  counts.total = record->spec.array.Count();
  const ArrayTasks tasks = ReadArrayTasks(*record);
  for (const TaskResult& task : tasks.tasks) {
    const JobState state = task.ending.state;
    counts.queued += state == JobState::kQueued;
    counts.running += state == JobState::kRunning;
    counts.succeeded += state == JobState::kSucceeded;
    counts.failed += state == JobState::kFailed || state == JobState::kCancelled;
    counts.lost += state == JobState::kLost;
  }
  if (counts.queued + counts.running == 0)
    record->state = counts.failed + counts.lost > 0 ? JobState::kFailed : JobState::kSucceeded;
}

void ReadLastAttempt(const std::string& folder, JobRecord* record) {
  const PosixFiles files;
  const std::string agent = StrCat(folder, "/attempt-", record->attempt, "/agent-0.jsonl");
  const AgentReport report = ParseAgentReport(files.Read(agent).value_or(""));
  record->started_us = report.started_us;
  record->state = JobState::kRunning;
  if (!report.end) return;
  const bool again = !report.requeue.empty() || !IsFinal(report.end->state);
  record->state = again ? JobState::kQueued : report.end->state;
  record->reason = again ? StrCat("to be started again: ", report.requeue) : report.end->reason;
  record->exit_status = report.end->exit_status;
  record->signal = report.end->signal;
  record->first_failed_rank = report.end->first_failed_rank;
  if (!again) record->ended_us = report.ended_us;
}

// Who has made the job's folder in a store that is a folder of this machine, where that is another user. What
// stands in other stores is nobody's: there the keys say who reads.
std::optional<uid_t> StrangerIn(const std::string& location, const std::string& id) {
  constexpr std::string_view kScheme = "file://";
  const std::string folder = location.starts_with(kScheme) ? location.substr(kScheme.size()) : location;
  if (!folder.starts_with('/')) return std::nullopt;
  return StrangerOf(StrCat(folder, "/jobs/", id));
}

}  // namespace

JobRecord RecordFromReports(JobSpec spec, const std::string& folder) {
  JobRecord record;
  record.spec = std::move(spec);
  record.dir = folder;
  record.state = JobState::kQueued;
  const PosixFiles files;
  while (files.Exists(StrCat(folder, "/attempt-", record.attempt + 1))) ++record.attempt;
  record.restarts = std::max(0, record.attempt - 1);
  if (record.attempt == 0) return record;
  if (!record.spec.array.empty()) {
    record.state = JobState::kRunning;
    CountTasks(&record);
    return record;
  }
  for (int attempt = 1; attempt <= record.attempt; ++attempt) {
    for (int rank = 0; rank < record.spec.resources.world_size(); ++rank)
      record.logs.push_back(
          {attempt, rank, -1, StrCat(folder, "/attempt-", attempt, "/rank-", rank, ".log")});
  }
  ReadLastAttempt(folder, &record);
  return record;
}

Result<JobRecord> StoredJobs::QueryOne(const std::string& id) {
  const std::string folder = StrCat(folder_, "/", id), job = StoredJobKey(id, "");
  const auto brought = BringSpec(*store_, job, folder);
  if (!brought && brought.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kNotFound, StrCat("there is no job '", id, "' in '", at_.at, "'"));
  if (!brought) return Fail(brought.error());
  OC_TRY(text, PosixFiles().Read(folder + "/spec.json"));
  OC_TRY(spec, SpecFromJson(text));
  spec.store = at_;  // as it is reached from here
  if (spec.array.empty()) {
    OC_TRY_VOID(BringAttempts(*store_, job, folder));
  } else {
    OC_TRY_VOID(BringReports(*store_, job, "attempt-1/agent-", folder));
  }
  JobRecord record = RecordFromReports(std::move(spec), folder);
  if (const auto stranger = StrangerIn(at_.at, id)) {
    const auto user = FindUser(*stranger);
    record.spec.user = user ? user->name : std::to_string(*stranger);
    ShutFiles(&record);
  }
  return record;
}

Result<std::vector<JobRecord>> StoredJobs::Query(const std::vector<std::string>& ids) {
  std::vector<JobRecord> records;
  for (const std::string& id : ids) {
    OC_TRY(record, QueryOne(id));
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<std::string>> StoredJobs::Ids() {
  std::vector<std::string> ids;
  std::string next;
  do {
    OC_TRY(page, store_->List("jobs/", next));
    for (const StoredObjectInfo& object : page.objects) {
      const std::vector<std::string> parts = Split(object.key, '/');
      if (parts.size() == 3 && parts[2] == "spec.json") ids.push_back(parts[1]);
    }
    next = page.next;
  } while (!next.empty());
  return ids;
}

Result<std::vector<JobRecord>> StoredJobs::List(const JobFilter&) {
  OC_TRY(ids, Ids());
  return Query(ids);
}

Result<std::vector<std::string>> StoredJobs::Resolve(const std::vector<std::string>& refs) {
  OC_TRY(all, Ids());
  std::vector<JobRefCandidate> jobs;
  // Ids begin with the user and go on with the time: a store knows no other order.
  for (const std::string& id : all) jobs.push_back({id});
  std::vector<std::string> ids;
  for (const std::string& ref : refs) {
    OC_TRY(id, ResolveJobRef(ref, jobs, [](std::string_view) { return std::string(); }));
    ids.push_back(std::move(id));
  }
  return ids;
}

Result<bool> StoredJobs::Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeout_seconds);
  while (true) {
    OC_TRY(records, Query(ids));
    const bool all = std::all_of(records.begin(), records.end(), [&](const JobRecord& record) {
      return IsFinal(record.state) || (until == WaitUntil::kStarted && record.attempt > 0);
    });
    if (all || std::chrono::steady_clock::now() >= end) return all;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
}

Result<SubmitPlan> StoredJobs::Plan(const JobSpec&) {
  return OnlyRead(at_.at);
}
Result<JobRecord> StoredJobs::Submit(const SubmitPlan&) {
  return OnlyRead(at_.at);
}
Result<void> StoredJobs::Cancel(const std::vector<std::string>&, const std::string&) {
  return OnlyRead(at_.at);
}
Result<void> StoredJobs::Hold(const std::vector<std::string>&) {
  return OnlyRead(at_.at);
}
Result<void> StoredJobs::Release(const std::vector<std::string>&) {
  return OnlyRead(at_.at);
}
Result<void> StoredJobs::Remove(const std::vector<std::string>&) {
  return OnlyRead(at_.at);
}
Result<std::vector<NodeInfo>> StoredJobs::Nodes() {
  return OnlyRead(at_.at);
}

Result<std::unique_ptr<Cluster>> OpenStoredJobs(const StoreBook& book, const std::string& text,
                                                const std::string& root) {
  OC_TRY(at, JobStoreOf(book, text));
  OC_TRY(store, OpenJobStore(at, "", book.variables));
  const std::string folder =
      StrCat(root, "/remote/", Sha256Of(JobStoreToJson(at)).Hex().substr(0, 16), "/jobs");
  return std::unique_ptr<Cluster>(
      std::make_unique<StoredJobs>(std::move(at), std::shared_ptr<Store>(std::move(store)), folder));
}

}  // namespace overcap
