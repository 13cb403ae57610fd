// SPDX-License-Identifier: Apache-2.0
#include "control/array_tasks.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "control/job_text.h"
#include "control/logs.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

const Ending kGood{JobState::kSucceeded, 0, 0, -1, ""};
const Ending kExit3{JobState::kFailed, 3, 0, 0, ""};
const Ending kKilled{JobState::kFailed, 137, 9, 0, ""};

class ArrayTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_tasks_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    record_.dir = folder;
    record_.spec.id = "ann_1_00000001";
    record_.spec.array = *ParseArraySpec("0-4:2,5-6");  // 0 2 4 5 6
    record_.state = JobState::kFailed;
    record_.attempt = 1;
    record_.tasks = {5, 0, 0, 3, 2, 0, 0};
    std::filesystem::create_directory(record_.dir + "/attempt-1");
  }
  void TearDown() override { std::filesystem::remove_all(record_.dir); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(record_.dir + "/attempt-1/" + name) << text;
  }
  void Report(int slot, const std::string& lines, const Claim& claim = {1, 1, "another boot", "agent"}) {
    Write(StrCat("agent-", slot, ".jsonl"), ClaimedLine(1, claim) + lines);
  }
  std::string States() {
    std::string states;
    for (const TaskResult& task : ReadArrayTasks(record_).tasks) {
      const bool not_run = task.ending.state == JobState::kUnknown;
      states += StrCat(task.task, ":", not_run ? "not run" : JobStateName(task.ending.state), "/",
                       task.attempt, " ");
    }
    return states;
  }

  JobRecord record_;
};

TEST_F(ArrayTasksTest, TheTaskThatFailedFirstInTimeIsFound) {
  Report(0, TaskStartLine(2, 0, 1) + TaskEndLine(30, 0, 1, kKilled) + TaskStartLine(31, 4, 1) +
                TaskEndLine(40, 4, 1, kGood) + EndLine(50, kGood));
  Report(2, TaskStartLine(2, 2, 1) + TaskEndLine(20, 2, 1, kExit3) + EndLine(50, kGood));
  EXPECT_EQ(States(), "0:failed/1 2:failed/1 4:succeeded/1 5:not run/0 6:not run/0 ");
  AddFailedTasks(&record_);
  EXPECT_EQ(record_.first_failed_task, 2);
  EXPECT_EQ(FirstFailedTaskLine(record_), "task 2 failed first: exit status 3");
  EXPECT_EQ(FailedTasksLine(record_, 20), "0, 2");
  EXPECT_EQ(FailedTasksLine(record_, 1), "0 and 1 more");
  EXPECT_EQ(DefaultTask(record_), 2);
}

TEST_F(ArrayTasksTest, TheLatestTryCountsWhicheverAgentRanIt) {
  Report(0, TaskStartLine(2, 0, 1));
  Report(1, TaskStartLine(5, 0, 2) + TaskEndLine(6, 0, 2, kGood) + TaskStartLine(7, 2, 1));
  Report(3, TaskStartLine(8, 2, 1) + TaskEndLine(9, 2, 1, kExit3));
  EXPECT_EQ(States(), "0:succeeded/2 2:failed/1 4:not run/0 5:not run/0 6:not run/0 ");
}

TEST_F(ArrayTasksTest, ATaskRunsAsLongAsItsAgentDoes) {
  record_.state = JobState::kRunning;
  const auto self = Identify(getpid());
  ASSERT_TRUE(self);
  Report(0, TaskStartLine(2, 0, 1),
         {self->pid, static_cast<int64_t>(self->start_ticks), self->boot_id, "agent"});
  Report(1, TaskStartLine(2, 2, 1));
  EXPECT_EQ(States(), "0:running/1 2:lost/1 4:queued/0 5:queued/0 6:queued/0 ");
}

TEST_F(ArrayTasksTest, TheFirstFailedIsAlwaysAmongVeryManyFailedOnes) {
  record_.spec.array = *ParseArraySpec("0-2999");
  std::string lines;
  for (int task = 0; task < 3000; ++task) lines += TaskEndLine(5000 - task, task, 1, kExit3);
  Report(0, lines);
  record_.tasks = {3000, 0, 0, 0, 3000, 0, 0};
  AddFailedTasks(&record_);
  EXPECT_EQ(record_.failed_tasks->size(), kMostFailedTasks);
  ASSERT_NE(FirstFailedTask(record_), nullptr);
  EXPECT_EQ(FirstFailedTask(record_)->task, 2999);
  EXPECT_EQ(FailedTasksLine(record_, 2), "0, 1 and 2998 more");
}

TEST_F(ArrayTasksTest, TasksThatACancelStoppedHaveNotFailed) {
  record_.state = JobState::kCancelled;
  record_.tasks = {5, 0, 0, 1, 2, 0, 2};
  Report(0, TaskEndLine(2, 0, 1, {JobState::kCancelled, 143, 15, 0, ""}) + TaskEndLine(3, 2, 1, kExit3));
  AddFailedTasks(&record_);
  EXPECT_EQ(record_.first_failed_task, 2);
  EXPECT_EQ(TasksLine(record_), "0-4:2,5-6: 5 tasks, 1 succeeded, 1 cancelled, 1 failed, 2 not run");
}

TEST_F(ArrayTasksTest, LogsAreThoseOfTheLastTryUnlessOneIsAskedFor) {
  for (const char* name : {"task-2.rank-0.log", "task-2.try-2.rank-0.log", "task-0.rank-0.log", "task-2.x"})
    Write(name, name);
  const auto path = [&](const LogRequest& request) {
    const auto logs = SelectLogs(record_, request);
    return logs ? logs->front().path.substr(record_.dir.size()) : logs.error().message;
  };
  EXPECT_EQ(path({.task = 2}), "/attempt-1/task-2.try-2.rank-0.log");
  EXPECT_EQ(path({.attempt = 1, .task = 2}), "/attempt-1/task-2.rank-0.log");
  EXPECT_EQ(path({}), "/attempt-1/task-0.rank-0.log");
  for (const LogRequest& none : {LogRequest{.attempt = 3, .task = 2}, LogRequest{.task = 4},
                                 LogRequest{.task = 1}, LogRequest{.ranks = {1}, .task = 2}})
    EXPECT_EQ(path(none), "job 'ann_1_00000001' has no such log");
  std::vector<std::pair<int, int>> listed;
  for (const LogFile& log : ListTaskLogs(record_)) listed.emplace_back(log.task, log.attempt);
  EXPECT_EQ(listed, (std::vector<std::pair<int, int>>{{0, 1}, {2, 1}, {2, 2}}));
}

TEST_F(ArrayTasksTest, AFolderThatIsGoneTellsNothing) {
  std::filesystem::remove_all(record_.dir);
  AddFailedTasks(&record_);
  EXPECT_FALSE(record_.failed_tasks);
  EXPECT_EQ(DefaultTask(record_), 0);
}

}  // namespace
}  // namespace overcap
