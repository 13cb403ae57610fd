// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/squeue_text.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <sstream>
#include <time.h>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "Mark1234";

std::string Recorded(const char* name = "squeue-marked.txt") {
  std::ifstream file(StrCat(OVERCAP_TEST_DATA "/slurm-22.05.8/", name), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<SqueueJob> Jobs() {
  auto jobs = ParseSqueue(Recorded(), kMark);
  EXPECT_TRUE(jobs) << jobs.error().message;
  return jobs ? *jobs : std::vector<SqueueJob>{};
}

SqueueJob JobNamed(const std::string& name) {
  for (const SqueueJob& job : Jobs()) {
    if (job.name == name && job.array_tasks.empty()) return job;
  }
  ADD_FAILURE() << "no job " << name;
  return {};
}

TEST(SqueueText, TheCommandAsksForAllJobsWithTheMark) {
  const std::vector<std::string> argv = SqueueCommand(kMark);
  EXPECT_EQ(argv[0], "squeue");
  EXPECT_NE(std::find(argv.begin(), argv.end(), "--states=all"), argv.end());
  EXPECT_NE(argv.back().find("Name:\x1fMark1234,Comment:\x1fMark1234"), std::string::npos);
}

TEST(SqueueText, ARunningJobIsReadInFull) {
  const SqueueJob job = JobNamed("owner");
  EXPECT_EQ(job.job_id, 5);
  EXPECT_EQ(job.array_job_id, 0);
  EXPECT_EQ(StrCat(job.user, " ", job.account, " ", job.partition, " ", job.qos), "alice lab-a short labq");
  EXPECT_EQ(job.raw_state, "RUNNING");
  EXPECT_EQ(job.raw_reason, "None");
  EXPECT_EQ(IdOfSlurmComment(job.comment), "20261115-owner");
  EXPECT_EQ(job.node_list, "n1");
  EXPECT_EQ(job.tres, (SlurmTres{1, 1, 100 << 20, 4, {{"a40", 4}}}));
  EXPECT_EQ(job.time_limit_s, 60);
  EXPECT_EQ(job.submit_us, 1'794'735'703'000'000);
  EXPECT_EQ(job.start_us, 1'794'735'704'000'000);
  EXPECT_EQ(job.priority, 1000);
}

TEST(SqueueText, AJobThatWasPutBackCountsItsRestarts) {
  const SqueueJob job = JobNamed("victim");
  EXPECT_EQ(job.raw_state, "PENDING");
  EXPECT_EQ(job.restarts, 1);
  EXPECT_EQ(job.node_list, "");
}

TEST(SqueueText, EndedJobsHaveTheirExitStatus) {
  EXPECT_EQ(JobNamed("fails").exit, (SlurmExit{3, 0}));
  EXPECT_EQ(JobNamed("sig").exit, (SlurmExit{0, 9}));
}

TEST(SqueueText, NamesAndCommentsMayHoldNewlinesAndSeparators) {
  const SqueueJob job = JobNamed("new\nline\x1f|12");
  EXPECT_EQ(job.comment, "a\nb\x1f|x");
  EXPECT_EQ(job.job_id, 12);
}

TEST(SqueueText, TasksThatWaitStandInOneRow) {
  int tasks = 0;
  for (const SqueueJob& job : Jobs()) {
    if (job.array_job_id == 6 && job.array_task >= 0) {
      ++tasks;
    } else if (job.array_job_id == 6) {
      EXPECT_EQ(job.array_tasks, "0-1,4-9");
    } else if (job.array_job_id == 7) {
      EXPECT_GT(job.array_tasks.size(), 1000u);
    }
  }
  EXPECT_EQ(tasks, 2);
}

TEST(SqueueText, GpusAreKnownAlsoWhereSlurmDoesNotCountThem) {
  const auto jobs = ParseSqueue(Recorded("squeue-marked-no-gpu-tres.txt"), kMark);
  ASSERT_TRUE(jobs) << jobs.error().message;
  std::map<int64_t, SlurmTres> tres;
  for (const SqueueJob& job : *jobs) tres[job.job_id] = job.tres;
  EXPECT_EQ(tres[1].gpus, 2);                                              // --gpus=2
  EXPECT_EQ(tres[2].gpus, 2);                                              // --gpus-per-node=1 -N2
  EXPECT_EQ(tres[3].gpu_types, (std::vector<GpuCount>{{"rtx_6000", 1}}));  // --gres=gpu:rtx_6000:1
  EXPECT_EQ(tres[4].gpus, 2);                                              // --gpus-per-task=1 -n2
  EXPECT_EQ(tres[5].gpus, 4);
  EXPECT_EQ(tres[8].gpus, 1);  // --gres=gpu
  EXPECT_EQ(jobs->front().features, "a40&rtx_6000");
}

TEST(SqueueText, DependenciesAreKeptAsSlurmWritesThem) {
  EXPECT_EQ(JobNamed("dep").dependency, "afterok:5(unfulfilled)");
  EXPECT_EQ(JobNamed("owner").dependency, "");
}

TEST(SqueueText, AnEmptyQueueIsFineButACutOneIsNot) {
  EXPECT_TRUE(ParseSqueue("", kMark)->empty());
  const std::string text = Recorded();
  for (size_t length = 1; length < text.size(); ++length) {
    const auto jobs = ParseSqueue(text.substr(0, length), kMark);
    const bool whole_rows = text.substr(0, length).ends_with("\x1fMark1234\n");
    ASSERT_EQ(bool(jobs), whole_rows) << length;
  }
}

TEST(SqueueText, ScannedRowsAreThoseOfOneUserAndReadTheSame) {
  const std::string text = Recorded();
  std::map<std::string, std::vector<SqueueJob>> by_user;
  for (SqueueJob& job : Jobs()) by_user[job.user].push_back(std::move(job));
  ASSERT_FALSE(by_user.empty());
  for (const auto& [user, jobs] : by_user) {
    const auto rows = ScanSqueue(text, kMark, user);
    ASSERT_TRUE(rows) << rows.error().message;
    ASSERT_EQ(rows->size(), jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      const SqueueRow& row = (*rows)[i];
      const SqueueJob parsed = row.Parse();
      EXPECT_EQ(row.job_id(), jobs[i].job_id);
      EXPECT_EQ(row.array_job_id(), jobs[i].array_job_id);
      EXPECT_EQ(row.gpus(), jobs[i].tres.gpus);
      EXPECT_EQ(row.submit_us(), jobs[i].submit_us);
      EXPECT_EQ(row.comment(), jobs[i].comment);
      EXPECT_EQ(
          std::tie(parsed.name, parsed.raw_state, parsed.tres, parsed.array_tasks, parsed.restarts),
          std::tie(jobs[i].name, jobs[i].raw_state, jobs[i].tres, jobs[i].array_tasks, jobs[i].restarts));
    }
  }
  EXPECT_TRUE(ScanSqueue(text, kMark, "nobody-else")->empty());
}

TEST(SqueueText, AnErrorOnStdoutIsNoQueue) {
  const auto jobs = ParseSqueue("slurm_load_jobs error: Unable to contact slurm controller\n", kMark);
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(jobs.error().message, "squeue: the answer is cut off or garbled in row 1");
}

TEST(SqueueText, OnlyOurOwnCommentsHaveAnId) {
  EXPECT_EQ(IdOfSlurmComment(SlurmComment("abc")), "abc");
  EXPECT_EQ(IdOfSlurmComment("something else"), "");
  EXPECT_EQ(IdOfSlurmComment(""), "");
}

TEST(SqueueText, TenThousandJobsAreReadQuickly) {
  const std::string text = Recorded();
  const size_t at = text.find("\n5\x1f") + 1;
  const std::string row = text.substr(at, text.find('\n', at) + 1 - at);
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += row;
  // Of this thread's own time: others may have the processors meanwhile.
  const auto spent_us = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  };
  int64_t best_us = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const int64_t begin_us = spent_us();
    ASSERT_EQ(ParseSqueue(many, kMark)->size(), 10'000u);
    best_us = std::min(best_us, spent_us() - begin_us);
  }
  RecordProperty("best_us", static_cast<int>(best_us));
  EXPECT_LT(best_us, 2'000'000);  // about 10 ms, many times that under sanitizers; were it quadratic, minutes
}

}  // namespace
}  // namespace overcap
