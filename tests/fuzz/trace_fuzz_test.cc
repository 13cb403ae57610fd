// SPDX-License-Identifier: Apache-2.0
// Histories come from other programs: every job of one is taken with numbers that a scheduler can reckon
// with, or skipped with its line, or the whole is refused in one line.
#include <limits>

#include "inputs.h"
#include "sched/trace/trace.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {
    "\n",         ",",          "|",        " ",          ";",         "-1",
    "0",          "1e300",      "-1e300",   "nan",        "inf",       "99999999999999999999",
    ".",          "\r",         "\"",       ":",          "-",         "T",
    "2147483648", "4294967296", "00:00:00", "2-00:00:00", "UNLIMITED", "gres/gpu="};

bool Understood(const Result<Trace>& trace, const std::string& input) {
  if (!trace) return ExpectOneLine(trace.error(), ErrorCode::kUsage);
  EXPECT_LE(trace->jobs.size(), input.size());
  for (const TraceJob& job : trace->jobs) {
    EXPECT_GE(job.submit_s, 0);
    EXPECT_GE(job.run_s, 0);
    EXPECT_GE(job.limit_s, 0);
    EXPECT_LE(job.run_s, std::numeric_limits<int64_t>::max() / 4);
    EXPECT_GE(job.gpus, 0);
    EXPECT_GE(job.nodes, 0);
    EXPECT_GE(job.cpus, 0);
    EXPECT_LT(static_cast<size_t>(job.lab), trace->labs.all().size());
    EXPECT_LT(static_cast<size_t>(job.user), trace->users.all().size());
    EXPECT_LT(static_cast<size_t>(job.partition), trace->partitions.all().size());
    EXPECT_LT(static_cast<size_t>(job.type), trace->types.all().size());
  }
  for (const std::string& line : trace->skips.Words()) EXPECT_EQ(line.find('\n'), std::string::npos);
  return !trace->jobs.empty();
}

TEST(TraceFuzz, ATableIsReadOrRefused) {
  const std::vector<std::string> corpus = {
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,vision\r\n",
      "submit,run,gpus,user,limit,nodes\n5,2,4,ann,100,1\n7,60,1,bob,100,1\n"};
  ForEachInput(Mutator(corpus, kWords, 42),
               [](const std::string& input) { return Understood(ReadCsvTrace(input, {}), input); });
}

TEST(TraceFuzz, AccountsOfSlurmAreReadOrRefused) {
  const std::vector<std::string> corpus = {
      "JobID|User|Account|Partition|Submit|Elapsed|Timelimit|AllocTRES|State\n"
      "5|ann|vision|short|2026-11-15T04:45:16|01:00:00|2-00:00:00|billing=4,cpu=16,gres/gpu:a40=4,gres/"
      "gpu=4,node=2|COMPLETED\n"
      "6|bob|nlp|long|2026-11-15T04:46:00|00:00:09|UNLIMITED|cpu=2,node=1|CANCELLED by 0\n"};
  ForEachInput(Mutator(corpus, kWords, 43),
               [](const std::string& input) { return Understood(ReadSacctTrace(input), input); });
}

TEST(TraceFuzz, AMapOfColumnsIsReadOrRefused) {
  const std::vector<std::string> words = {"=", ",", ":ms", "submit", "run", "gpus", "lab", ":", " "};
  ForEachInput(Mutator({"submit=timestamp,run=duration:ms,gpus=num_gpus,lab=cluster"}, words, 44),
               [](const std::string& input) {
                 const auto columns = ParseColumnMap(input);
                 return columns ? true : ExpectOneLine(columns.error(), ErrorCode::kUsage);
               });
}

}  // namespace
}  // namespace overcap
