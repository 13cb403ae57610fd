// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/squeue_text.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

constexpr std::string_view kCommentStart = "overcap:";

// In the order of the columns.
enum Column {
  kJobId,
  kArrayJobId,
  kArrayTaskId,
  kUser,
  kAccount,
  kPartition,
  kQos,
  kState,
  kReason,
  kNodes,
  kNodeList,
  kTres,
  kCpus,
  kTimeLimit,
  kSubmit,
  kStart,
  kEnd,
  kPriority,
  kDependency,
  kExitCode,
  kRestarts,
  kGpusPerJob,
  kGpusPerNode,
  kGpusPerTask,
  kTasks,
  kFeatures,
  kPlainColumns,
  kName = kPlainColumns,
  kComment,
  kAllColumns,
};
static_assert(kAllColumns == SqueueRow::kColumns);

const RowColumns& Columns() {
  static const RowColumns columns = {
      {"JobID",      "ArrayJobID", "ArrayTaskID", "UserName",     "Account",       "Partition",
       "QOS",        "State",      "Reason",      "NumNodes",     "NodeList",      "tres-alloc",
       "NumCPUs",    "TimeLimit",  "SubmitTime",  "StartTime",    "EndTime",       "PriorityLong",
       "Dependency", "exit_code",  "RestartCnt",  "tres-per-job", "tres-per-node", "tres-per-task",
       "NumTasks",   "Feature"},
      {"Name", "Comment"}};
  return columns;
}

constexpr size_t kShortestRow = 200, kMostReserved = 100'000;

using Fields = std::span<const std::string_view>;

std::string_view OrEmpty(std::string_view text) {
  return text == "(null)" || text == "N/A" ? std::string_view() : text;
}

int SmallNumber(std::string_view text) {
  const auto value = ParseInt(text);
  return value && *value >= 0 && *value <= 1'000'000'000 ? static_cast<int>(*value) : 0;
}

void TakeArray(const Fields& fields, SqueueJob* job) {
  const std::string_view task = OrEmpty(fields[kArrayTaskId]);
  if (task.empty()) return;
  job->array_job_id = ParseInt(fields[kArrayJobId]).value_or(0);
  const auto single = ParseInt(task);
  if (single && *single >= 0 && *single <= INT32_MAX) {
    job->array_task = static_cast<int>(*single);
  } else {
    job->array_tasks = task;
  }
}

// Slurm counts GPUs among what a job has only where its administrators let it (AccountingStorageTRES);
// otherwise what was asked for must tell.
void TakeGpus(const Fields& fields, int nodes, SlurmTres* tres) {
  if (tres->gpus > 0) return;
  const auto tasks = std::max(1, SmallNumber(fields[kTasks]));
  AddAskedGpus(fields[kGpusPerJob], 1, tres);
  AddAskedGpus(fields[kGpusPerNode], nodes, tres);
  AddAskedGpus(fields[kGpusPerTask], tasks, tres);
}

void TakeTimes(const Fields& fields, SqueueJob* job) {
  job->time_limit_s = ParseSlurmDuration(fields[kTimeLimit]);
  job->submit_us = ParseSlurmTime(fields[kSubmit]).value_or(0);
  job->start_us = ParseSlurmTime(fields[kStart]).value_or(0);
  job->end_us = ParseSlurmTime(fields[kEnd]).value_or(0);
}

Result<int64_t> JobIdOf(const Fields& fields) {
  const auto id = ParseInt(fields[kJobId]);
  if (id && *id > 0) return *id;
  return Fail(ErrorCode::kCorrupt, StrCat("squeue printed the job id ", Quoted(fields[kJobId])));
}

std::string_view CommentOf(const Fields& fields) {
  return fields[kComment] == "(null)" ? std::string_view() : fields[kComment];
}

SlurmTres TresOf(const Fields& fields) {
  SlurmTres tres = ParseTres(fields[kTres]);
  TakeGpus(fields, std::max(1, SmallNumber(fields[kNodes])), &tres);
  return tres;
}

Result<void> TakeRow(const Fields& fields, SqueueJob* job) {
  OC_TRY(id, JobIdOf(fields));
  job->job_id = id;
  TakeArray(fields, job);
  job->user = fields[kUser];
  job->account = OrEmpty(fields[kAccount]);
  job->partition = fields[kPartition];
  job->qos = OrEmpty(fields[kQos]);
  job->raw_state = fields[kState];
  job->raw_reason = fields[kReason];
  job->nodes = SmallNumber(fields[kNodes]);
  job->cpus = SmallNumber(fields[kCpus]);
  job->node_list = OrEmpty(fields[kNodeList]);
  job->tres = TresOf(fields);
  job->features = OrEmpty(fields[kFeatures]);
  TakeTimes(fields, job);
  job->priority = ParseInt(fields[kPriority]).value_or(0);
  job->dependency = OrEmpty(fields[kDependency]);
  job->exit = ReadSlurmExit(fields[kExitCode]);
  job->restarts = SmallNumber(fields[kRestarts]);
  job->name = fields[kName];
  job->comment = CommentOf(fields);
  return {};
}

}  // namespace

// By number: the order that squeue chooses itself, which nobody here needs, takes it longer.
std::vector<std::string> SqueueCommand(std::string_view mark) {
  return {"squeue",      "--noheader", "--all",
          "--local",     "--sort=i",   "--states=all",
          "--noconvert", "--Format",   FormatColumns(Columns(), mark)};
}

namespace {

// Gives each row's columns to `take`, which may fail.
template <typename Take>
Result<void> ForEachRow(std::string_view text, std::string_view mark, Take take) {
  MarkedRows rows(text, mark, kPlainColumns, Columns().free.size());
  std::vector<std::string_view> fields;
  while (true) {
    auto more = rows.Next(&fields);
    if (!more) return Fail(more.error().code, StrCat("squeue: ", more.error().message));
    if (!*more) return {};
    OC_TRY_VOID(take(Fields(fields)));
  }
}

}  // namespace

Result<std::vector<SqueueJob>> ParseSqueue(std::string_view text, std::string_view mark) {
  std::vector<SqueueJob> jobs;
  jobs.reserve(text.size() / 256);
  OC_TRY_VOID(
      ForEachRow(text, mark, [&](const Fields& fields) { return TakeRow(fields, &jobs.emplace_back()); }));
  return jobs;
}

Result<std::vector<SqueueRow>> ScanSqueue(std::string_view text, std::string_view mark,
                                          std::string_view user) {
  std::vector<SqueueRow> found;
  found.reserve(std::min<size_t>(text.size() / kShortestRow, kMostReserved));
  OC_TRY_VOID(ForEachRow(text, mark, [&](const Fields& fields) -> Result<void> {
    if (fields[kUser] != user) return {};
    OC_TRY(id, JobIdOf(fields));
    SqueueRow& row = found.emplace_back();
    row.text_ = text.data();
    for (size_t i = 0; i < SqueueRow::kColumns; ++i) {
      row.begins_[i] = static_cast<uint32_t>(fields[i].data() - text.data());
      row.ends_[i] = row.begins_[i] + static_cast<uint32_t>(fields[i].size());
    }
    row.job_id_ = id;
    if (row.is_array()) row.array_job_id_ = ParseInt(fields[kArrayJobId]).value_or(0);
    return {};
  }));
  return found;
}

Result<void> CheckSqueue(std::string_view text, std::string_view mark) {
  return ForEachRow(text, mark, [](const Fields& fields) -> Result<void> {
    OC_TRY_VOID(JobIdOf(fields));
    return {};
  });
}

std::string_view SqueueRow::Field(size_t column) const {
  return {text_ + begins_[column], ends_[column] - begins_[column]};
}
std::array<std::string_view, SqueueRow::kColumns> SqueueRow::Fields() const {
  std::array<std::string_view, kColumns> fields;
  for (size_t i = 0; i < kColumns; ++i) fields[i] = Field(i);
  return fields;
}

std::string_view SqueueRow::user() const {
  return Field(kUser);
}
std::string_view SqueueRow::state() const {
  return Field(kState);
}
std::string_view SqueueRow::reason() const {
  return Field(kReason);
}
std::string_view SqueueRow::comment() const {
  const std::string_view comment = Field(kComment);
  return comment == "(null)" ? std::string_view() : comment;
}
std::string_view SqueueRow::name() const {
  return Field(kName);
}
int64_t SqueueRow::submit_us() const {
  return ParseSlurmTime(Field(kSubmit)).value_or(0);
}
int64_t SqueueRow::start_us() const {
  return ParseSlurmTime(Field(kStart)).value_or(0);
}
int SqueueRow::restarts() const {
  return SmallNumber(Field(kRestarts));
}
int SqueueRow::nodes() const {
  return SmallNumber(Field(kNodes));
}
int SqueueRow::gpus() const {
  return TresOf(Fields()).gpus;
}
bool SqueueRow::is_array() const {
  return !OrEmpty(Field(kArrayTaskId)).empty();
}

SqueueJob SqueueRow::Parse() const {
  SqueueJob job;
  (void)TakeRow(Fields(), &job);  // its id has been read before
  return job;
}

std::string SlurmComment(std::string_view id) {
  return StrCat(kCommentStart, id);
}

std::string_view IdOfSlurmComment(std::string_view comment) {
  if (comment.substr(0, kCommentStart.size()) != kCommentStart) return {};
  return comment.substr(kCommentStart.size());
}

}  // namespace overcap
