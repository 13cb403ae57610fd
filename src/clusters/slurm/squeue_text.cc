// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/squeue_text.h"

#include <algorithm>

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
  kEligible,
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
};

const RowColumns& Columns() {
  static const RowColumns columns = {
      {"JobID",         "ArrayJobID", "ArrayTaskID", "UserName",     "Account",      "Partition",
       "QOS",           "State",      "Reason",      "NumNodes",     "NodeList",     "tres-alloc",
       "NumCPUs",       "TimeLimit",  "SubmitTime",  "EligibleTime", "StartTime",    "EndTime",
       "PriorityLong",  "Dependency", "exit_code",   "RestartCnt",   "tres-per-job", "tres-per-node",
       "tres-per-task", "NumTasks",   "Feature"},
      {"Name", "Comment"}};
  return columns;
}

std::string_view OrEmpty(std::string_view text) {
  return text == "(null)" || text == "N/A" ? std::string_view() : text;
}

int SmallNumber(std::string_view text) {
  const auto value = ParseInt(text);
  return value && *value >= 0 && *value <= 1'000'000'000 ? static_cast<int>(*value) : 0;
}

void TakeArray(const std::vector<std::string_view>& fields, SqueueJob* job) {
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
void TakeGpus(const std::vector<std::string_view>& fields, SqueueJob* job) {
  if (job->tres.gpus > 0) return;
  const auto tasks = std::max(1, SmallNumber(fields[kTasks]));
  AddAskedGpus(fields[kGpusPerJob], 1, &job->tres);
  AddAskedGpus(fields[kGpusPerNode], std::max(1, job->nodes), &job->tres);
  AddAskedGpus(fields[kGpusPerTask], tasks, &job->tres);
}

void TakeTimes(const std::vector<std::string_view>& fields, SqueueJob* job) {
  job->time_limit_s = ParseSlurmDuration(fields[kTimeLimit]);
  job->submit_us = ParseSlurmTime(fields[kSubmit]).value_or(0);
  job->eligible_us = ParseSlurmTime(fields[kEligible]).value_or(0);
  job->start_us = ParseSlurmTime(fields[kStart]).value_or(0);
  job->end_us = ParseSlurmTime(fields[kEnd]).value_or(0);
}

Result<void> TakeRow(const std::vector<std::string_view>& fields, SqueueJob* job) {
  const auto id = ParseInt(fields[kJobId]);
  if (!id || *id <= 0) {
    return Fail(ErrorCode::kCorrupt, StrCat("squeue printed the job id ", Quoted(fields[kJobId])));
  }
  job->job_id = *id;
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
  job->tres = ParseTres(fields[kTres]);
  TakeGpus(fields, job);
  job->features = OrEmpty(fields[kFeatures]);
  TakeTimes(fields, job);
  job->priority = ParseInt(fields[kPriority]).value_or(0);
  job->dependency = OrEmpty(fields[kDependency]);
  job->exit = ReadSlurmExit(fields[kExitCode]);
  job->restarts = SmallNumber(fields[kRestarts]);
  job->name = fields[kName];
  job->comment = fields[kComment] == "(null)" ? std::string_view() : fields[kComment];
  return {};
}

}  // namespace

std::vector<std::string> SqueueCommand(std::string_view mark) {
  return {"squeue",       "--noheader",  "--all",    "--local",
          "--states=all", "--noconvert", "--Format", FormatColumns(Columns(), mark)};
}

Result<std::vector<SqueueJob>> ParseSqueue(std::string_view text, std::string_view mark) {
  std::vector<SqueueJob> jobs;
  jobs.reserve(text.size() / 256);
  MarkedRows rows(text, mark, kPlainColumns, Columns().free.size());
  std::vector<std::string_view> fields;
  while (true) {
    auto more = rows.Next(&fields);
    if (!more) return Fail(more.error().code, StrCat("squeue: ", more.error().message));
    if (!*more) return jobs;
    OC_TRY_VOID(TakeRow(fields, &jobs.emplace_back()));
  }
}

std::string SlurmComment(std::string_view id) {
  return StrCat(kCommentStart, id);
}

std::string_view IdOfSlurmComment(std::string_view comment) {
  if (comment.substr(0, kCommentStart.size()) != kCommentStart) return {};
  return comment.substr(kCommentStart.size());
}

}  // namespace overcap
