// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_jobs.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/text.h"
#include "clusters/shut_files.h"
#include "clusters/slurm/slurm_open_job.h"
#include "clusters/slurm/submit_reply.h"
#include "model/job_id.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kAccountTime{20};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() < 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The number and the task, -1 without one.
Result<std::pair<int64_t, int>> ReadNumber(const std::string& id) {
  const size_t line = id.find('_');
  const auto number = ParseInt(id.substr(0, line));
  const auto task = line == std::string::npos ? -1 : ParseInt(id.substr(line + 1)).value_or(INT64_MAX);
  if (number && task < INT32_MAX) return std::pair(int64_t{*number}, static_cast<int>(task));
  return Fail(ErrorCode::kNotFound, StrCat("there is no job '", id, "'"));
}

std::string NameOfStranger(const SlurmJobFolder& folder) {
  const auto user = FindUser(*folder.stranger());
  return user ? user->name : std::to_string(*folder.stranger());
}

}  // namespace

bool IsSlurmNumber(std::string_view id) {
  const size_t line = id.find('_');
  return IsNumber(id.substr(0, line)) && (line == std::string_view::npos || IsNumber(id.substr(line + 1)));
}

SlurmJobs::SlurmJobs(SlurmContext* context)
    : context_(context),
      queue_(context),
      index_(StrCat(context->settings().root, "/clusters/", context->settings().name)) {}

tl::unexpected<Error> SlurmJobs::NoSuchJob(const std::string& id) const {
  return Fail(ErrorCode::kNotFound, StrCat("there is no job '", id, "'"));
}

JobRecord SlurmJobs::Settle(JobRecord record) {
  SlurmJobFolder folder(record.dir);
  // Where it cannot be written down it is found out again.
  (void)folder.WriteEnded(record, context_->clock().WallUs());
  index_.Close(record.spec.id, record.ended_us);
  return record;
}

JobRecord SlurmJobs::StrangersRecord(const SlurmJobFolder& folder, const JobSpec& spec) const {
  JobRecord record;
  if (auto ended = folder.Ended(spec)) {
    record = *std::move(ended);
  } else {
    const int64_t now_us = context_->clock().WallUs();
    const JobEvidence evidence = folder.Evidence(spec);
    record = JudgeJob(evidence, SlurmSight(), now_us).record;
    if (!IsFinal(record.state) && ReportLives(evidence.last, now_us)) record.state = JobState::kRunning;
  }
  record.spec.user = NameOfStranger(folder);
  ShutFiles(&record);
  return record;
}

Result<void> SlurmJobs::CheckOwn(const std::string& id, std::string_view verb) const {
  const SlurmJobFolder folder = Folder(id);
  if (!folder.stranger()) return {};
  return Fail(ErrorCode::kDenied, StrCat("job '", id, "' belongs to user '", NameOfStranger(folder),
                                         "', who alone can have it ", verb));
}

Result<std::optional<JobEvidence>> SlurmJobs::Load(const std::string& id, JobRecord* record) {
  if (!IsJobId(id)) return NoSuchJob(id);
  const SlurmJobFolder folder = Folder(id);
  auto spec = folder.Spec();
  if (!spec && spec.error().code != ErrorCode::kNotFound) return Fail(std::move(spec).error());
  if (!spec || (!spec->cluster.empty() && spec->cluster != context_->settings().name)) return NoSuchJob(id);
  if (folder.stranger()) {
    if (spec->id != id) return NoSuchJob(id);
    *record = StrangersRecord(folder, *spec);
    return std::optional<JobEvidence>();
  }
  if (auto ended = folder.Ended(*spec)) {
    *record = *std::move(ended);
    return std::optional<JobEvidence>();
  }
  // A store that cannot be reached now: what is known stays.
  if (!spec->store.empty() && context_->settings().depot)
    (void)context_->settings().depot->Refresh(*spec, folder.path());
  return std::optional<JobEvidence>(folder.Evidence(*std::move(spec)));
}

Result<std::vector<JobRecord>> SlurmJobs::Query(const std::vector<std::string>& ids, int64_t max_age_us,
                                                std::vector<std::string>* missing) {
  std::vector<JobRecord> records(ids.size());
  std::vector<Open> open;
  std::vector<size_t> foreign;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (IsSlurmNumber(ids[i])) {
      foreign.push_back(i);
      continue;
    }
    auto evidence = Load(ids[i], &records[i]);
    if (!evidence && missing == nullptr) return Fail(std::move(evidence).error());
    if (!evidence) missing->push_back(ids[i]);
    if (!evidence || !*evidence) continue;
    Verdict verdict = JudgeJob(**evidence, SlurmSight(), context_->clock().WallUs());
    if (IsFinal(verdict.record.state)) {
      records[i] = Settle(std::move(verdict.record));
    } else {
      open.push_back({i, std::move(**evidence), {}, {}});
    }
  }
  if (open.empty() && foreign.empty()) return records;
  const auto read = queue_.Refresh(max_age_us);
  if (!read && open.empty()) return Fail(read.error());
  Judge(&open);
  for (Open& job : open) {
    JobRecord& record = records[job.place];
    record = std::move(job.verdict.record);
    if (IsFinal(record.state)) {
      record = Settle(std::move(record));
    } else {
      record.stale = read ? queue_.stale() : read.error().message;
    }
  }
  for (const size_t place : foreign) {
    OC_TRY(record, Foreign(ids[place]));
    records[place] = std::move(record);
  }
  return records;
}

void SlurmJobs::Judge(std::vector<Open>* open) {
  std::vector<Open*> doubtful;
  for (Open& job : *open) {
    const JobEvidence& evidence = job.evidence;
    const int64_t number = evidence.handle ? evidence.handle->slurm_id : 0;
    job.sight = queue_.SightOf(evidence.spec.id, number);
    if (!evidence.handle && !job.sight.rows.empty()) {
      // Its submit never learnt the answer.
      const SqueueJob& row = *job.sight.rows.front();
      const int64_t found = row.array_job_id > 0 ? row.array_job_id : row.job_id;
      SlurmJobFolder folder(evidence.folder);
      (void)folder.WriteHandle({context_->settings().name, found, "query", context_->clock().WallUs()});
    }
    job.verdict = JudgeJob(evidence, job.sight, context_->clock().WallUs());
    if (job.verdict.ask_accounting) doubtful.push_back(&job);
  }
  if (!doubtful.empty()) AskAccounts(&doubtful);
}

// One call for all of them.
void SlurmJobs::AskAccounts(std::vector<Open*>* doubtful) {
  std::vector<int64_t> numbers;
  for (const Open* job : *doubtful) {
    if (job->evidence.handle) numbers.push_back(job->evidence.handle->slurm_id);
  }
  bool none_kept = false;
  auto rows = numbers.empty() ? Result<std::vector<SacctJob>>() : Accounts(numbers, &none_kept);
  const bool asked = rows || none_kept;
  for (Open* job : *doubtful) {
    job->sight.accounting = asked ? SlurmSight::Accounting::kAsked : SlurmSight::Accounting::kAway;
    const int64_t number = job->evidence.handle ? job->evidence.handle->slurm_id : -1;
    for (const SacctJob& row : rows ? *rows : std::vector<SacctJob>()) {
      if (row.job_id == number || row.array_job_id == number) job->sight.accounts.push_back(row);
    }
    job->verdict = JudgeJob(job->evidence, job->sight, context_->clock().WallUs());
  }
}

Result<std::vector<SacctJob>> SlurmJobs::Accounts(const std::vector<int64_t>& numbers, bool* none_kept) {
  char mark[24];
  std::snprintf(mark, sizeof mark, "m%016llx", static_cast<unsigned long long>(context_->random().Next()));
  const auto argv = SacctCommand({numbers, 0, {}}, mark);
  auto answer = context_->Call(argv, kAccountTime);
  *none_kept =
      answer && !answer->end.ok() && answer->err.find("accounting storage is disabled") != std::string::npos;
  if (!answer) return Fail(std::move(answer).error());
  if (!answer->end.ok()) {
    return Fail(
        ReadToolFailure(argv[0], answer->err, answer->end.exit_status, {context_->settings().name}).error);
  }
  return ParseSacct(answer->out, mark);
}

Result<JobRecord> SlurmJobs::Foreign(const std::string& id) {
  OC_TRY(wanted, ReadNumber(id));
  const auto [number, task] = wanted;
  const auto fits = [task = task](const auto& row) { return task < 0 || row.array_task == task; };
  std::optional<JobRecord> found;
  for (const SqueueJob* row : queue_.RowsOfNumber(number)) {
    if (!fits(*row) || (found && !IsFinal(found->state))) continue;
    JobRecord record = ForeignRecord(*row, context_->settings().name);
    if (!found || !IsFinal(record.state)) found = std::move(record);
  }
  if (found) {
    found->stale = IsFinal(found->state) ? "" : queue_.stale();
    found->spec.id = id;
    return *std::move(found);
  }
  bool none_kept = false;
  const auto accounts = Accounts({number}, &none_kept);
  for (const SacctJob& row : accounts ? *accounts : std::vector<SacctJob>()) {
    if (!row.last || !fits(row) || row.user != queue_.user()) continue;
    JobRecord record = ForeignRecord(row, context_->settings().name);
    record.spec.id = id;
    return record;
  }
  return NoSuchJob(id);
}

Result<JobRecord> SlurmJobs::Glance(const std::string& id) {
  JobRecord record;
  OC_TRY(evidence, Load(id, &record));
  if (!evidence) return record;
  Verdict verdict = JudgeJob(*evidence, SlurmSight(), context_->clock().WallUs());
  if (IsFinal(verdict.record.state)) return Settle(std::move(verdict.record));
  if (ReportLives(evidence->last, context_->clock().WallUs())) verdict.record.state = JobState::kRunning;
  return std::move(verdict.record);
}

// The first row that has not ended speaks for an array.
Result<JobRecord> SlurmJobs::LookAtForeign(const std::string& id) {
  OC_TRY(number, ReadNumber(id));
  OC_TRY(rows, queue_.LookAt(number.first));
  std::optional<JobRecord> found;
  for (const SqueueJob& row : rows) {
    if (number.second >= 0 && row.array_task != number.second) continue;
    JobRecord record = ForeignRecord(row, context_->settings().name);
    if (!found || !IsFinal(record.state)) found = std::move(record);
    if (!IsFinal(found->state)) break;
  }
  if (!found) return NoSuchJob(id);
  found->spec.id = id;
  return *std::move(found);
}

Result<JobRecord> SlurmJobs::LookAt(const std::string& id) {
  if (IsSlurmNumber(id)) return LookAtForeign(id);
  JobRecord record;
  OC_TRY(evidence, Load(id, &record));
  if (!evidence || !evidence->handle) return evidence ? Glance(id) : Result<JobRecord>(record);
  const int64_t now_us = context_->clock().WallUs();
  OC_TRY(rows, queue_.LookAt(evidence->handle->slurm_id));
  SlurmSight sight;
  sight.asked = true;
  sight.taken_us = now_us;
  for (const SqueueJob& row : rows) sight.rows.push_back(&row);
  Verdict verdict = JudgeJob(*evidence, sight, now_us);
  if (verdict.ask_accounting) verdict.record.state = JobState::kUnknown;
  if (IsFinal(verdict.record.state)) return Settle(std::move(verdict.record));
  return std::move(verdict.record);
}

}  // namespace overcap
