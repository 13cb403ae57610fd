// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

TEST(Trace, CsvIsReadByTheUsualNamesOfItsColumns) {
  const auto trace = ReadCsvTrace(
      "timestamp,duration,num_gpus,gpu_time,cluster\n"
      "2017-10-09 07:01:55,66.0,1,66.0,vision\r\n"
      "2017-10-09 07:02:00,120,8,960,nlp\n",
      {});
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 2u);
  EXPECT_EQ(trace->jobs[0].submit_s, 1507532515);
  EXPECT_EQ(trace->jobs[0].run_s, 66);
  EXPECT_EQ(trace->jobs[1].gpus, 8);
  EXPECT_EQ(trace->labs.all(), (std::vector<std::string>{"vision", "nlp"}));
  EXPECT_EQ(trace->skips.count(), 0);
}

TEST(Trace, CsvColumnsCanBeToldWithTheirUnits) {
  const auto columns = ParseColumnMap("submit=when:ms, run=took:min,gpus=n");
  ASSERT_TRUE(columns);
  const auto trace = ReadCsvTrace("when,took,n\n5000,2,4\n", *columns);
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs[0].submit_s, 5);
  EXPECT_EQ(trace->jobs[0].run_s, 120);
}

TEST(Trace, ColumnsThatAreMissingAreNamed) {
  EXPECT_EQ(ReadCsvTrace("a,b\n1,2\n", {}).error().message, "line 1: no column says the submit time");
  EXPECT_EQ(ReadCsvTrace("submit,run\n1,2\n", {}).error().message,
            "line 1: no column says the number of GPUs");
  EXPECT_EQ(ReadCsvTrace("submit,run,gpus\n1,2,3\n", {{"lab", "team"}}).error().message,
            "line 1: there is no column 'team'");
  EXPECT_FALSE(ParseColumnMap("colour=red"));
  EXPECT_FALSE(ReadSacctTrace("JobID|User\n1|ann\n"));
}

TEST(Trace, JobsThatCannotBeAreSkippedWithTheirLines) {
  const auto trace = ReadCsvTrace("submit,run,gpus\n-1,5,1\n1,-5,1\n1,x,1\n1,5,0\n1,5\n2,5,1\n3,-7,1\n", {});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->skips.Words(), (std::vector<std::string>{
                                      "1 job skipped: asks for no GPUs and no CPUs (line 5)",
                                      "1 job skipped: fewer columns than the header has (line 6)",
                                      "2 jobs skipped: negative run time (lines 3, 8)",
                                      "1 job skipped: negative submit time (line 2)",
                                      "1 job skipped: no run time (line 4)",
                                  }));
}

TEST(Trace, SacctIsReadWithoutItsSteps) {
  const auto trace = ReadSacctTrace(
      "JobID|User|Account|Partition|Submit|Elapsed|Timelimit|AllocTRES|State\n"
      "5|ann|vision|short|2026-11-15T04:45:16|01:00:00|2-00:00:00|billing=4,cpu=16,gres/gpu:a40=4,gres/"
      "gpu=4,node=2|COMPLETED\n"
      "5.batch||vision||2026-11-15T04:45:16|01:00:00||cpu=16|COMPLETED\n"
      "6|bob|nlp|long|2026-11-15T04:46:00|00:00:00|UNLIMITED||CANCELLED\n");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 1u);
  EXPECT_EQ(trace->jobs[0].gpus, 4);
  EXPECT_EQ(trace->jobs[0].nodes, 2);
  EXPECT_EQ(trace->jobs[0].run_s, 3600);
  EXPECT_EQ(trace->jobs[0].limit_s, 172800);
  EXPECT_EQ(trace->types.all()[static_cast<size_t>(trace->jobs[0].type)], "a40");
  EXPECT_EQ(trace->skips.Words(), std::vector<std::string>{"1 job skipped: never ran (line 4)"});
}

TEST(Trace, AFormatIsToldByItsFirstLine) {
  EXPECT_EQ(GuessTraceFormat("a,b\n"), TraceFormat::kCsv);
  EXPECT_EQ(GuessTraceFormat("JobID|User\n"), TraceFormat::kSacct);
  EXPECT_EQ(GuessTraceFormat("0badcafe {\"e\":\"journal\"}\n"), TraceFormat::kJournal);
}

TEST(Trace, OtherFormatsAreRefusedWithTheNamesOfThoseThatAreRead) {
  for (const char* text : {"", "; Version: 2\n", "; MaxJobs: 1,000 | 2,000\n1 2\n", "  1 10 5 100 4 -1\n"}) {
    const auto format = GuessTraceFormat(text);
    ASSERT_FALSE(format) << text;
    EXPECT_EQ(format.error().code, ErrorCode::kUsage);
    EXPECT_EQ(format.error().message,
              "its format must be CSV, the output of 'sacct -P', or the engine's journal");
  }
  EXPECT_EQ(TraceFormatNamed("swf").error().hint, "there are: csv, sacct, journal");
}

}  // namespace
}  // namespace overcap
