// SPDX-License-Identifier: Apache-2.0
#include "model/agent_report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "model/report_tally.h"

namespace overcap {
namespace {

const Ending kFailed{JobState::kFailed, 3, 0, 1, "rank 1 said \"no\"\n"};
const Ending kGood{JobState::kSucceeded, 0, 0, -1, ""};

std::string WholeReport() {
  return ClaimedLine(10, {123, 456, "b-1", "agent"}) + StartedLine(20, {200, 201}, 29500) +
         NoteLine(25, "disk full \xF0\x9F\x98\x80") + RankEndLine({1, 3, 0, 30}) +
         RankEndLine({0, 143, 15, 31}) + EndLine(40, kFailed);
}

std::string ArrayReport() {
  return ClaimedLine(1, {5, 6, "b", "agent"}) + TaskStartLine(2, 17, 1) + TaskEndLine(3, 17, 1, kFailed) +
         TaskStartLine(4, 3, 1) + TaskEndLine(5, 3, 1, kGood) + TaskStartLine(6, 17, 2);
}

TEST(AgentReportTest, EveryLineComesBack) {
  const AgentReport report = ParseAgentReport(WholeReport());
  AgentReport expected;
  expected.claim = Claim{123, 456, "b-1", "agent"};
  expected.started = true;
  expected.started_us = 20;
  expected.pids = {200, 201};
  expected.master_port = 29500;
  expected.notes = {"disk full \xF0\x9F\x98\x80"};
  expected.rank_ends = {{1, 3, 0, 30}, {0, 143, 15, 31}};
  expected.end = kFailed;
  expected.ended_us = expected.last_us = 40;
  EXPECT_EQ(report, expected);
}

TEST(AgentReportTest, ATaskHasTheResultOfItsLatestTry) {
  const AgentReport report = ParseAgentReport(ArrayReport());
  EXPECT_EQ(report.tasks,
            (std::vector<TaskResult>{{17, 2, {JobState::kRunning, -1, 0, -1, ""}, 6}, {3, 1, kGood, 5}}));
  EXPECT_FALSE(report.end);
}

TEST(AgentReportTest, ARequeueIsKnownUntilTheClusterRefusedIt) {
  const Ending preempted{JobState::kPreempted, 143, 15, -1, "preempted"};
  const std::string text = ClaimedLine(1, {5, 6, "b"}) + RequeueLine(7, "preempted") + EndLine(8, preempted);
  const AgentReport report = ParseAgentReport(text);
  EXPECT_EQ(report.requeue, "preempted");
  EXPECT_EQ(report.end, preempted);
  const AgentReport refused = ParseAgentReport(text + NotRequeuedLine(9, "scontrol: Invalid job id"));
  EXPECT_EQ(refused.requeue, "");
  EXPECT_EQ(refused.end, preempted);
  EXPECT_EQ(refused.notes, std::vector<std::string>{"scontrol: Invalid job id"});
}

TEST(AgentReportTest, AClaimKeepsTheSlurmJobOfItsStart) {
  const Claim claim{5, 6, "b", "agent", 4711, 2};
  EXPECT_EQ(*ClaimFromJson(ClaimToJson(claim)), claim);
  EXPECT_EQ(ClaimToJson({5, 6, "b"}).find("slurm"), std::string::npos);
}

TEST(AgentReportTest, TrailingNulsAndATornLastLineAreIgnored) {
  const std::string whole = WholeReport();
  EXPECT_EQ(ParseAgentReport(whole + std::string(5000, '\0')), ParseAgentReport(whole));
  const AgentReport torn = ParseAgentReport(whole.substr(0, whole.size() - 5) + std::string(10, '\0'));
  EXPECT_FALSE(torn.end);
  EXPECT_EQ(torn.damaged_lines, 0);
}

TEST(AgentReportTest, ADamagedLineIsCountedAndTheRestIsRead) {
  const AgentReport report = ParseAgentReport(
      std::string(3, '\0') + "\nnonsense\n[1]\n{\"e\":\"new\"}\n{\"e\":3}\n" + EndLine(1, kGood));
  EXPECT_EQ(report.damaged_lines, 5);
  EXPECT_EQ(report.end, kGood);
}

TEST(AgentReportTest, LinesWithBlanksAndFieldsOfANewerOvercapAreRead) {
  const AgentReport report = ParseAgentReport(
      "{ \"t\": 7, \"e\": \"end\", \"state\": \"succeeded\", \"exit_status\": 0, \"more\": {\"a\": []} }\n");
  EXPECT_EQ(report.end, kGood);
  EXPECT_EQ(report.ended_us, 7);
}

RC_GTEST_PROP(AgentReportTest, FeedingInPiecesGivesTheSame, ()) {
  const std::string text = WholeReport() + ArrayReport();
  AgentReportReader reader;
  size_t offset = 0, known = 0;
  while (known < text.size()) {
    known = std::min(text.size(), known + *rc::gen::inRange<size_t>(1, 80));
    // What the file shows: all bytes so far and the preallocated rest.
    const std::string file = text.substr(0, known) + std::string(text.size() - known, '\0');
    offset += reader.Feed(std::string_view(file).substr(offset));
  }
  RC_ASSERT(offset == text.size());
  RC_ASSERT(reader.report() == ParseAgentReport(text));
}

RC_GTEST_PROP(AgentReportTest, AnyBytesAreReadWithoutHarm, ()) {
  std::string text = WholeReport() + ArrayReport();
  const int flips = *rc::gen::inRange(1, 20);
  for (int i = 0; i < flips; ++i)
    text[*rc::gen::inRange<size_t>(0, text.size())] = *rc::gen::inRange<char>(-128, 127);
  const AgentReport report = ParseAgentReport(text);
  RC_ASSERT(report.damaged_lines <= 40);
}

TEST(AgentReportTest, AClaimComesBackAndABadOneIsRefused) {
  const Claim claim{123, 456, "b-1", "daemon"};
  EXPECT_EQ(*ClaimFromJson(ClaimToJson(claim)), claim);
  EXPECT_FALSE(ClaimFromJson(""));
  EXPECT_FALSE(ClaimFromJson(R"({"pid":"x"})"));
}

TEST(AgentReportTest, TwentyThousandTasksAreAllThere) {
  std::string text;
  for (int task = 0; task < 20000; ++task) text += TaskStartLine(1, task, 1) + TaskEndLine(2, task, 1, kGood);
  const AgentReport report = ParseAgentReport(text);
  ASSERT_EQ(report.tasks.size(), 20000u);
  EXPECT_EQ(report.tasks[19999], (TaskResult{19999, 1, kGood, 2}));
}

TEST(AgentReportTest, NotesAndLongLinesDoNotFillMemory) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += NoteLine(1, std::string(5000, 'n'));
  text += R"({"e":"note","t":1,"more":[)" + std::string(2 << 20, ' ') + "1]}\n" + EndLine(7, kGood);
  const AgentReport report = ParseAgentReport(text);
  EXPECT_EQ(report.notes.size(), 1000u);
  EXPECT_EQ(report.notes[0].size(), 4096u);
  EXPECT_EQ(report.damaged_lines, 1);
  EXPECT_EQ(report.ended_us, 7);
}

TEST(ReportTally, CountsWhatAReportSaysOfItsArray) {
  const ArraySpec array = *ParseArraySpec("0-9,20-40:5");
  const std::string text = TaskStartLine(1, 3, 1) + TaskEndLine(2, 3, 1, kGood) + TaskStartLine(3, 20, 1) +
                           TaskStartLine(4, 25, 1) + TaskEndLine(5, 25, 1, {JobState::kFailed, 3, 0, 0, {}}) +
                           TaskStartLine(5, 21, 1) + TaskStartLine(5, -1, 1) + TaskStartLine(6, 99, 1) +
                           EndLine(9, kGood);
  ReportTally tally(array, ReportDetail::kTasks);
  EXPECT_EQ(tally.Feed(text + "torn"), text.size());
  EXPECT_EQ(tally.succeeded() * 100 + tally.running() * 10 + tally.failed(), 111);
  EXPECT_EQ(tally.ended_us(), 9);
  EXPECT_EQ(tally.TaskAt(tally.PositionOf(25)).exit_status, 3);
  EXPECT_EQ(tally.TaskAt(tally.PositionOf(25)).last_us, 5);
  EXPECT_FALSE(tally.Reported(tally.PositionOf(30)));
  EXPECT_EQ(tally.PositionOf(21), -1);
}

TEST(ReportTally, ALaterTryCountsAndAnEarlierOneDoesNot) {
  const ArraySpec array = *ParseArraySpec("0-9");
  ReportTally tally(array, ReportDetail::kTasks);
  tally.Feed(TaskStartLine(1, 3, 2) + TaskEndLine(2, 3, 2, kGood) + TaskStartLine(3, 3, 1));
  EXPECT_EQ(tally.succeeded(), 1);
  EXPECT_EQ(tally.running(), 0);
}

TEST(ReportTally, PositionsAreThoseOfTheArray) {
  const ArraySpec array = *ParseArraySpec("3,7-19:4,100-103,200");
  const ReportTally tally(array, ReportDetail::kCounts);
  for (int task = -2; task < 250; ++task) EXPECT_EQ(tally.PositionOf(task), array.PositionOf(task)) << task;
  std::vector<std::pair<int, int>> all;
  ForEachTask(array, [&](int position, int index) { all.emplace_back(position, index); });
  ASSERT_EQ(std::ssize(all), array.Count());
  for (const auto& [position, index] : all) EXPECT_EQ(array.IndexAt(position), index);
}

TEST(ReportTally, ForTheEngineOfOneUserNoReportIsTooLong) {
  JobSpec spec;
  spec.array = *ParseArraySpec("0-9");
  std::string text;
  for (int attempt = 1; attempt < 50'000; ++attempt)
    text += TaskStartLine(1, 3, attempt) + TaskEndLine(2, 3, attempt, kFailed);
  text += TaskEndLine(3, 9, 1, kGood);
  ReportTally own(spec.array, ReportDetail::kTasks, BoundsOfReport(spec));
  own.Feed(text);
  EXPECT_EQ(own.succeeded(), 1);
  spec.owner.uid = 1002;
  ReportTally forged(spec.array, ReportDetail::kTasks, BoundsOfReport(spec));
  forged.Feed(text);
  EXPECT_EQ(forged.succeeded(), 0);
  spec.max_restarts = 100'000;
  ReportTally allowed(spec.array, ReportDetail::kTasks, BoundsOfReport(spec));
  allowed.Feed(TaskStartLine(1, 3, 1) + TaskEndLine(3, 9, 1, kGood));
  EXPECT_EQ(allowed.succeeded(), 1);
}

TEST(ReportTally, TheReportOfTheLargestArrayIsReadToItsEnd) {
  JobSpec spec;
  spec.owner.uid = 1002;
  spec.array = *ParseArraySpec(StrCat("0-", kMaxArrayTasks - 1));
  constexpr int64_t kNow = 1'763'580'000'000'000;
  const int last = kMaxArrayTasks - 1;
  const std::string lines = TaskStartLine(kNow, last, 1) + TaskEndLine(kNow, last, 1, kGood);
  EXPECT_GT(BoundsOfReport(spec).whole_bytes, std::ssize(lines) * spec.array.Count());
}

TEST(ReportTally, OfALongForgedReportTheEndIsStillRead) {
  JobSpec spec;
  spec.owner.uid = 1002;
  ReportTally tally(spec.array, ReportDetail::kTasks, BoundsOfReport(spec));
  const std::string note = NoteLine(1, std::string(1000, 'x'));
  std::string text;
  while (text.size() < (8u << 20)) text += note;
  tally.Feed(text + EndLine(9, kGood));
  EXPECT_EQ(tally.ended_us(), 9);
}

}  // namespace
}  // namespace overcap
