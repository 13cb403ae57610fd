// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sacct_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "Mark1234";

std::string Recorded() {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/sacct-marked.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<SacctJob> JobsWithId(int64_t id) {
  auto jobs = ParseSacct(Recorded(), kMark);
  EXPECT_TRUE(jobs) << jobs.error().message;
  std::vector<SacctJob> found;
  for (const SacctJob& job : *jobs) {
    if (job.job_id == id) found.push_back(job);
  }
  return found;
}

std::string Row(std::vector<std::string> fields) {
  fields.resize(21);
  std::string row;
  for (const std::string& field : fields) row += StrCat(field, "\x1fMark1234");
  return row + "\n";
}

TEST(SacctText, TheCommandAsksForJobsOrForATime) {
  const std::vector<std::string> some = SacctCommand({{5, 7}, 0, ""}, kMark);
  EXPECT_EQ(some.back(), "--jobs=5,7");
  EXPECT_EQ(some[6], "--delimiter=\x1fMark1234");
  const std::vector<std::string> mine = SacctCommand({{}, 1'794'734'712'000'000, "alice"}, kMark);
  EXPECT_EQ(mine[8], "--user=alice");
  EXPECT_EQ(mine[9].substr(0, 20), "--starttime=2026-11-");
}

TEST(SacctText, AJobThatFailedIsReadInFull) {
  const std::vector<SacctJob> jobs = JobsWithId(10);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].raw_state, "FAILED");
  EXPECT_EQ(jobs[0].exit, (SlurmExit{3, 0}));
  EXPECT_EQ(StrCat(jobs[0].user, " ", jobs[0].account, " ", jobs[0].partition), "alice lab-b short");
  EXPECT_EQ(jobs[0].time_limit_s, 172800);
  EXPECT_EQ(jobs[0].end_us, 1'794'735'703'000'000);
  EXPECT_EQ(jobs[0].given.cpus, 1);
  EXPECT_TRUE(jobs[0].last);
}

TEST(SacctText, TheCommentIsFoundInTheSubmitLineWhereTheClusterKeepsNone) {
  EXPECT_EQ(JobsWithId(10)[0].comment, "overcap:20261115-fails");
  EXPECT_EQ(JobsWithId(1)[0].comment, "overcap:20261115-hostile");
  EXPECT_EQ(JobsWithId(13)[0].comment, "");
}

TEST(SacctText, EveryStartOfARequeuedJobIsThere) {
  const std::vector<SacctJob> jobs = JobsWithId(4);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].raw_state, "PREEMPTED");
  EXPECT_EQ(jobs[0].start, 1);
  EXPECT_FALSE(jobs[0].last);
  EXPECT_EQ(jobs[0].given.gpus, 8);
  EXPECT_EQ(jobs[1].raw_state, "PENDING");
  EXPECT_EQ(jobs[1].start, 2);
  EXPECT_TRUE(jobs[1].last);
  EXPECT_EQ(jobs[1].node_list, "");
  EXPECT_EQ(jobs[1].start_us, 0);
}

TEST(SacctText, ATaskOfAnArrayHasItsOwnIdAndItsArrays) {
  const SacctJob job = JobsWithId(20)[0];
  EXPECT_EQ(job.array_job_id, 6);
  EXPECT_EQ(job.array_task, 2);
}

TEST(SacctText, TasksThatNeverRanStandInOneRow) {
  const auto jobs = ParseSacct(Row({"6_[2-9%2]", "6", "CANCELLED by 1000"}), kMark);
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ((*jobs)[0].array_tasks, "2-9%2");
  EXPECT_EQ((*jobs)[0].array_task, -1);
  EXPECT_EQ((*jobs)[0].array_job_id, 6);
}

TEST(SacctText, HostileNamesAreReadWhole) {
  EXPECT_EQ(JobsWithId(12)[0].name, "new\nline\x1f|12");
}

TEST(SacctText, ACutAnswerIsNoAnswer) {
  const std::string text = Recorded();
  const auto jobs = ParseSacct(text.substr(0, text.size() - 1), kMark);
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(ParseSacct(Row({"x", "x"}), kMark));
  EXPECT_TRUE(ParseSacct("", kMark)->empty());
}

}  // namespace
}  // namespace overcap
