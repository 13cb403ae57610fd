// SPDX-License-Identifier: Apache-2.0
#include "agent/array_run.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <signal.h>
#include <unistd.h>

#include "agent/task_counter.h"
#include "agent/testing/agent_world.h"
#include "base/text.h"
#include "sys/cgroup.h"

namespace overcap {
namespace {

class ArrayRunTest : public testing::Test {
 protected:
  void Array(int first, int last) { world_.spec.array.ranges = {{first, last, 1}}; }
  AgentWorld world_;
};

TEST_F(ArrayRunTest, TwoAgentsRunEachTaskExactlyOnce) {
  Array(0, 199);
  world_.Shell("echo $OVERCAP_TASK_ID/$OVERCAP_TASK_COUNT try $OVERCAP_TASK_TRY");
  world_.Save();
  const pid_t first = world_.Start(0), second = world_.Start(1);
  EXPECT_EQ(world_.Wait(first), 0);
  EXPECT_EQ(world_.Wait(second), 0);
  std::map<int, int> runs;
  for (int slot : {0, 1}) {
    EXPECT_EQ(world_.End(slot), "succeeded 0 0");
    for (const TaskResult& task : world_.Report(slot).tasks) {
      EXPECT_EQ(Describe(task.ending), "succeeded 0 0");
      ++runs[task.task];
    }
  }
  EXPECT_EQ(runs.size(), 200u);
  for (const auto& [task, count] : runs) {
    EXPECT_EQ(count, 1) << task;
    EXPECT_EQ(world_.File(StrCat("task-", task, ".rank-0.log")), StrCat(task, "/200 try 1\n"));
  }
}

TEST_F(ArrayRunTest, TheRanksOfEachTaskMeetAtAPortOfTheirOwn) {
  Array(0, 4);
  world_.spec.resources.ranks_per_node = 2;
  world_.Shell("echo $MASTER_PORT");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  std::set<std::string> ports;
  for (int task = 0; task < 5; ++task) {
    const std::string port = world_.File(StrCat("task-", task, ".rank-0.log"));
    EXPECT_EQ(world_.File(StrCat("task-", task, ".rank-1.log")), port);
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 1u) << "the kernel may give one port twice, not five times";
}

// After a power cut the second number says which tasks may have begun.
TEST_F(ArrayRunTest, TheCounterHasOnTheDiskWhatMayHaveBegun) {
  const std::string path = world_.Root() + "/next-task";
  auto first = TaskCounter::Open(path), second = TaskCounter::Open(path);
  ASSERT_TRUE(first && second);
  const auto number = [&](size_t which) {
    int64_t value = 0;
    ReadWhole(path).copy(reinterpret_cast<char*>(&value), sizeof value, which * sizeof value);
    return value;
  };
  EXPECT_EQ(first->Take(), 0);
  EXPECT_EQ(number(1), 0) << "a report may say it as well";
  EXPECT_EQ(second->Take(), 1);
  second->MayBegin(1);
  EXPECT_EQ(number(1), 65);
  first->MayBegin(64);
  EXPECT_EQ(number(1), 65) << "one sync for both agents";
  first->MayBegin(65);
  EXPECT_EQ(number(1), 129);
  EXPECT_EQ(number(0), 2);
}

// The first task of an agent may run for days: no other start syncs its own.
TEST_F(ArrayRunTest, TheStartOfTheFirstTaskIsSyncedByTheReport) {
  Array(0, 0);
  world_.Shell("true");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  int64_t numbers[3] = {7, 7, 7};
  world_.File("next-task").copy(reinterpret_cast<char*>(numbers), sizeof numbers);
  EXPECT_EQ(numbers[1], 0) << "nothing beyond it counts as begun";
}

// Room for the report of the next task is taken while the line of the end is queued: it is written first.
TEST_F(ArrayRunTest, ReservingRoomWritesWhatIsQueued) {
  const std::string path = world_.Root() + "/report";
  auto file = ReportFile::Make(path);
  ASSERT_TRUE(file);
  file->Queue("line\n");
  EXPECT_EQ(ReadWhole(path), "");
  ASSERT_TRUE(file->Reserve(1 << 20));
  EXPECT_EQ(ReadWhole(path), "line\n");
}

TEST_F(ArrayRunTest, EachTaskKeepsItsOwnEnd) {
  Array(5, 7);
  world_.Shell("exit $OVERCAP_TASK_ID");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  std::string ends;
  for (const TaskResult& task : world_.Report().tasks)
    ends += StrCat(task.task, " ", Describe(task.ending), "; ");
  EXPECT_EQ(ends, "5 failed 5 0 rank 0; 6 failed 6 0 rank 0; 7 failed 7 0 rank 0; ");
}

TEST_F(ArrayRunTest, TriesAFailedTaskAgainInPlace) {
  Array(0, 1);
  world_.spec.max_restarts = 2;
  world_.Shell("echo try $OVERCAP_TASK_TRY; [ $OVERCAP_TASK_TRY = 2 ]");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const AgentReport report = world_.Report();
  ASSERT_EQ(report.tasks.size(), 2u);
  EXPECT_EQ(report.tasks[1].attempt, 2);
  EXPECT_EQ(Describe(report.tasks[1].ending), "succeeded 0 0");
  EXPECT_EQ(world_.File("task-1.rank-0.log"), "try 1\n");
  EXPECT_EQ(world_.File("task-1.try-2.rank-0.log"), "try 2\n");
}

TEST_F(ArrayRunTest, RunsTheTasksThatAreGivenAgainFirstAndKeepsTheirLogs) {
  Array(0, 2);
  world_.Shell("echo $OVERCAP_TASK_ID try $OVERCAP_TASK_TRY");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  AgentOptions again = world_.options;
  again.slot = 1;
  again.retry_tasks = {2};
  EXPECT_EQ(world_.Wait(world_.Start(again)), 0);
  EXPECT_EQ(world_.Report(1).tasks.size(), 1u);
  EXPECT_EQ(world_.File("task-2.rank-0.log"), "2 try 1\n");
  EXPECT_EQ(world_.File("task-2.try-2.rank-0.log"), "2 try 2\n");
}

TEST_F(ArrayRunTest, DrainsAfterTheCurrentTask) {
  Array(0, 99);
  world_.Shell("kill -USR2 $PPID; echo done");
  EXPECT_EQ(world_.Run(), "succeeded 0 0: drained");
  EXPECT_EQ(world_.Report().tasks.size(), 1u);
  EXPECT_EQ(world_.File("task-0.rank-0.log"), "done\n");
}

TEST_F(ArrayRunTest, StopsAtOnceWhenCancelled) {
  Array(0, 99);
  world_.Shell("kill -TERM $PPID; exec sleep 1000");
  EXPECT_EQ(world_.Run(), "cancelled 143 15");
  const AgentReport report = world_.Report();
  ASSERT_EQ(report.tasks.size(), 1u);
  EXPECT_EQ(Describe(report.tasks[0].ending), "cancelled 143 15");
}

TEST_F(ArrayRunTest, KillsWhatATaskLeavesBehindBeforeTheNext) {
  Array(0, 1);
  world_.Shell(
      "[ $OVERCAP_TASK_ID = 1 ] && exec sh -c 'kill -0 $(cat $DIR/pid) 2>/dev/null && exit 9; exit 0';"
      "setsid sleep 1000 >/dev/null 2>&1 & echo $! > $DIR/pid");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const AgentReport report = world_.Report();
  ASSERT_EQ(report.tasks.size(), 2u);
  EXPECT_EQ(Describe(report.tasks[1].ending), "succeeded 0 0");
}

TEST_F(ArrayRunTest, ATaskThatRunsOutOfMemoryDoesNotHurtTheNext) {
  auto probe = Cgroup::Create({StrCat("overcap-array-test-probe-", getpid()), 64 << 20, ""});
  if (!probe) GTEST_SKIP() << "NO CONTROL GROUP HERE: " << probe.error().message;
  EXPECT_TRUE(probe->Remove(std::chrono::milliseconds(1000)));
  world_.spec.id = StrCat("ada_1700000001_", "0000", getpid() % 9000 + 1000);
  Array(0, 2);
  world_.spec.resources.mem_bytes = 64 << 20;
  // The later ones live longer than the pause between two looks at the memory.
  world_.Shell("[ $OVERCAP_TASK_ID = 0 ] || exec sleep 0.5; head -c 600000000 /dev/zero | tail");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const AgentReport report = world_.Report();
  ASSERT_EQ(report.tasks.size(), 3u);
  const std::string first = Describe(report.tasks[0].ending);
  EXPECT_TRUE(first.ends_with(": memory limit of 64.0 MiB reached")) << first;
  EXPECT_EQ(Describe(report.tasks[1].ending), "succeeded 0 0");
  EXPECT_EQ(Describe(report.tasks[2].ending), "succeeded 0 0");
}

TEST_F(ArrayRunTest, EnforcesTheTimeLimitOfEachTask) {
  Array(0, 1);
  world_.spec.resources.time_seconds = 1;
  world_.Shell("[ $OVERCAP_TASK_ID = 1 ] || exec sleep 1000");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const AgentReport report = world_.Report();
  ASSERT_EQ(report.tasks.size(), 2u);
  EXPECT_EQ(Describe(report.tasks[0].ending), "failed 124 0: time limit of 1s reached");
  EXPECT_EQ(Describe(report.tasks[1].ending), "succeeded 0 0");
}

}  // namespace
}  // namespace overcap
