// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sacct_text.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

// In the order of kFields.
enum Column {
  kJobId,
  kJobIdRaw,
  kState,
  kExitCode,
  kDerivedExitCode,
  kUser,
  kAccount,
  kPartition,
  kQos,
  kSubmit,
  kEligible,
  kStart,
  kEnd,
  kTimelimit,
  kAllocTres,
  kReqTres,
  kNodeList,
  kReason,
  kJobName,
  kComment,
  kSubmitLine,
  kColumns
};
constexpr std::string_view kFields =
    "JobID,JobIDRaw,State,ExitCode,DerivedExitCode,User,Account,Partition,QOS,Submit,Eligible,Start,End,"
    "TimelimitRaw,AllocTRES,ReqTRES,NodeList,Reason,JobName,Comment,SubmitLine";

// "6", "6_0", "6_[2-9%2]", "7+1" (a part of a heterogeneous job).
void TakeArray(std::string_view id, SacctJob* job) {
  const size_t line = id.find('_');
  const auto array = line == std::string_view::npos ? std::nullopt : ParseInt(id.substr(0, line));
  if (!array || *array <= 0) return;
  job->array_job_id = *array;
  std::string_view task = id.substr(line + 1);
  const auto single = ParseInt(task);
  if (single && *single >= 0 && *single <= INT32_MAX) {
    job->array_task = static_cast<int>(*single);
  } else if (task.size() > 2 && task.front() == '[' && task.back() == ']') {
    job->array_tasks = task.substr(1, task.size() - 2);
  }
}

// The value of --comment in a submit line, which has no quotes: up to the next blank.
std::string_view CommentInLine(std::string_view line) {
  constexpr std::string_view kOption = " --comment=";
  const size_t at = line.find(kOption);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + kOption.size());
  return line.substr(0, line.find(' '));
}

Result<void> TakeRow(const std::vector<std::string_view>& fields, SacctJob* job) {
  const auto id = ParseInt(fields[kJobIdRaw].substr(0, fields[kJobIdRaw].find_first_of("._+")));
  if (!id || *id <= 0) {
    return Fail(ErrorCode::kCorrupt, StrCat("sacct printed the job id ", Quoted(fields[kJobIdRaw])));
  }
  job->job_id = *id;
  TakeArray(fields[kJobId], job);
  job->raw_state = fields[kState];
  job->raw_reason = fields[kReason];
  job->exit = ReadSlurmExit(fields[kExitCode]);
  job->step_exit = ReadSlurmExit(fields[kDerivedExitCode]);
  job->user = fields[kUser];
  job->account = fields[kAccount];
  job->partition = fields[kPartition];
  job->qos = fields[kQos];
  job->submit_us = ParseSlurmTime(fields[kSubmit]).value_or(0);
  job->eligible_us = ParseSlurmTime(fields[kEligible]).value_or(0);
  job->start_us = ParseSlurmTime(fields[kStart]).value_or(0);
  job->end_us = ParseSlurmTime(fields[kEnd]).value_or(0);
  job->time_limit_s = ParseSlurmDuration(fields[kTimelimit]);
  job->given = ParseTres(fields[kAllocTres]);
  job->requested = ParseTres(fields[kReqTres]);
  if (fields[kNodeList] != "None assigned") job->node_list = fields[kNodeList];
  job->name = fields[kJobName];
  job->comment = fields[kComment].empty() ? CommentInLine(fields[kSubmitLine]) : fields[kComment];
  return {};
}

// sacct gives them in the order in which the database got to know them, which is that of the starts.
void NumberStarts(std::vector<SacctJob>* jobs) {
  std::map<std::pair<int64_t, std::string>, SacctJob*> seen;
  for (SacctJob& job : *jobs) {
    SacctJob*& previous = seen[{job.job_id, job.array_tasks}];
    if (previous != nullptr) {
      job.start = previous->start + 1;
      previous->last = false;
    }
    previous = &job;
  }
}

}  // namespace

std::vector<std::string> SacctCommand(const SacctQuery& query, std::string_view mark) {
  std::vector<std::string> argv = {"sacct",
                                   "--noheader",
                                   "--allocations",
                                   "--duplicates",
                                   "--parsable",
                                   "--noconvert",
                                   StrCat("--delimiter=", kFieldEnd, mark),
                                   StrCat("--format=", kFields)};
  if (query.user.empty()) {
    argv.push_back("--allusers");
  } else {
    argv.push_back(StrCat("--user=", query.user));
  }
  if (!query.jobs.empty()) {
    std::string list;
    for (int64_t job : query.jobs) list += StrCat(list.empty() ? "" : ",", job);
    argv.push_back(StrCat("--jobs=", list));
  }
  if (query.since_us > 0) argv.push_back(StrCat("--starttime=", FormatSlurmTime(query.since_us)));
  return argv;
}

Result<std::vector<SacctJob>> ParseSacct(std::string_view text, std::string_view mark) {
  std::vector<SacctJob> jobs;
  MarkedRows rows(text, mark, 0, kColumns);
  std::vector<std::string_view> fields;
  while (true) {
    auto more = rows.Next(&fields);
    if (!more) return Fail(more.error().code, StrCat("sacct: ", more.error().message));
    if (!*more) break;
    OC_TRY_VOID(TakeRow(fields, &jobs.emplace_back()));
  }
  NumberStarts(&jobs);
  return jobs;
}

}  // namespace overcap
