// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <algorithm>
#include <errno.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/testing/agent_world.h"
#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/testing/in_child.h"

namespace overcap {
namespace {

class AgentTest : public testing::Test {
 protected:
  AgentWorld world_;
};

TEST_F(AgentTest, RunsACommandAndReportsAllOfIt) {
  world_.Shell("echo hello");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_EQ(world_.File("rank-0.log"), "hello\n");
  const AgentReport report = world_.Report();
  ASSERT_TRUE(report.claim && report.started);
  EXPECT_EQ(report.pids.size(), 1u);
  EXPECT_GT(report.master_port, 0);
  ASSERT_EQ(report.rank_ends.size(), 1u);
  EXPECT_EQ(report.rank_ends[0].exit_status, 0);
  EXPECT_EQ(report.damaged_lines, 0);
  const auto claim = ClaimFromJson(world_.File("agent-0.claim"));
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->pid, report.claim->pid);
}

TEST_F(AgentTest, PassesTheArgumentsByteForByte) {
  const std::vector<std::string> words = {"a  b", "\"q\" 'q'", "&&", "$(id)", "x\ny", "ü \xff\xfe", ""};
  world_.spec.command = {"printf", "<%s>"};
  std::string expected;
  for (const std::string& word : words)
    world_.spec.command.push_back(word), expected += StrCat("<", word, ">");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_EQ(world_.File("rank-0.log"), expected);
}

TEST_F(AgentTest, TellsEachRankWhereItStands) {
  world_.SetEnvironment({"MINE=1 2", "RANK=99"});
  world_.spec.resources.ranks_per_node = 2;
  world_.options.gpus = {1, 3};
  world_.Shell(
      "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR "
      "$CUDA_VISIBLE_DEVICES $OVERCAP_ATTEMPT $PYTHONUNBUFFERED $MINE; echo $MASTER_PORT >&2; pwd");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const std::string port = std::to_string(world_.Report().master_port);
  EXPECT_EQ(world_.File("rank-0.log"),
            StrCat("0/2 0/2 0 127.0.0.1 1,3 1 1 1 2\n", port, "\n", world_.Root(), "\n"));
  EXPECT_EQ(world_.File("rank-1.log"),
            StrCat("1/2 1/2 0 127.0.0.1 1,3 1 1 1 2\n", port, "\n", world_.Root(), "\n"));
  const std::string environment = world_.File("environment");
  EXPECT_NE(environment.find(std::string("MINE=1 2\0RANK=0\0", 16)), std::string::npos);
  struct stat info;
  ASSERT_EQ(stat((world_.Attempt() + "/environment").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AgentTest, RanksMakeFilesAsTheSubmitterWouldAndLogsStayPrivate) {
  world_.Shell("umask; ulimit -Sn");
  world_.spec.umask = 002;
  world_.spec.nofile = 99;
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_EQ(world_.File("rank-0.log"), "0002\n99\n");
  struct stat info;
  ASSERT_EQ(stat((world_.Attempt() + "/rank-0.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(AgentTest, RanksHaveTheUsualUmaskWhenTheSubmittersIsNotTold) {
  world_.Shell("umask");
  world_.Save();
  const mode_t before = umask(077);  // as under the engine
  const pid_t agent = world_.Start();
  umask(before);
  EXPECT_EQ(world_.Wait(agent), 0);
  EXPECT_EQ(world_.File("rank-0.log"), "0022\n");
}

TEST_F(AgentTest, LeavesASlotThatIsClaimedAlone) {
  world_.Shell("echo x >> $DIR/runs");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  const std::string report = world_.File("agent-0.jsonl");
  EXPECT_EQ(world_.Wait(world_.Start()), kAgentNotMine);
  EXPECT_EQ(world_.File("agent-0.jsonl"), report);
  EXPECT_EQ(world_.Scratch("runs"), "x\n");
}

TEST_F(AgentTest, ReportsExitStatusAndSignal) {
  world_.Shell("exit 42");
  EXPECT_EQ(world_.Run(), "failed 42 0 rank 0");
  AgentWorld other;
  other.Shell("kill -SEGV $$");
  EXPECT_EQ(other.Run(), "failed 139 11 rank 0");
}

TEST_F(AgentTest, ReportsTheRankThatFailedFirst) {
  world_.spec.resources.ranks_per_node = 3;
  world_.Shell("[ $RANK = 1 ] && exit 5; trap 'exit 9' TERM; while :; do sleep 0.01; done");
  EXPECT_EQ(world_.Run(), "failed 5 0 rank 1");
  EXPECT_EQ(world_.Report().rank_ends.size(), 3u);
}

TEST_F(AgentTest, ReportsACommandThatDoesNotExist) {
  world_.spec.command = {"no-such-program"};
  EXPECT_EQ(world_.Run(), "failed 127 0 rank 0: command 'no-such-program' does not exist");
}

TEST_F(AgentTest, ReportsACommandThatMayNotBeExecuted) {
  world_.spec.command = {"/etc/passwd"};
  EXPECT_EQ(world_.Run(), "failed 126 0 rank 0: command '/etc/passwd' may not be executed");
}

TEST_F(AgentTest, ReportsAMissingFolder) {
  world_.Shell("true");
  world_.spec.workdir = "/no/such/folder";
  EXPECT_EQ(world_.Run(),
            "failed 126 0: cannot start in folder '/no/such/folder': No such file or directory");
}

TEST_F(AgentTest, ReportsAnEnvironmentThatIsNotInTheStore) {
  world_.Shell("true");
  world_.spec.environment = std::string(64, 'a');
  EXPECT_TRUE(world_.Run().starts_with("failed 126 0: "));
}

TEST_F(AgentTest, EnforcesTheTimeLimit) {
  world_.Shell("exec sleep 100");
  world_.spec.resources.time_seconds = 1;
  EXPECT_EQ(world_.Run(), "failed 124 0: time limit of 1s reached");
}

TEST_F(AgentTest, EnforcesTheMemoryLimitByLooking) {
  world_.Shell("echo go; head -c 600000000 /dev/zero | tail | sleep 100");
  world_.spec.resources.mem_bytes = 64 << 20;
  world_.options.cgroups = false;
  EXPECT_EQ(world_.Run(), "failed 137 9: memory limit of 64.0 MiB reached");
  EXPECT_EQ(world_.File("rank-0.log"), "go\n");
}

TEST_F(AgentTest, EnforcesTheMemoryLimitByAControlGroupWhereThereIsOne) {
  const auto probe = Cgroup::Create({"overcap-agent-test-probe", 64 << 20, ""});
  if (!probe) GTEST_SKIP() << "NO CONTROL GROUP HERE: " << probe.error().message;
  Cgroup group = *probe;
  EXPECT_TRUE(group.Remove(std::chrono::milliseconds(1000)));
  world_.spec.id = StrCat("ada_1700000000_", "0000", getpid() % 9000 + 1000);
  world_.Shell("echo go; head -c 600000000 /dev/zero | tail | sleep 100");
  world_.spec.resources.mem_bytes = 64 << 20;
  const std::string end = world_.Run();
  EXPECT_TRUE(end.starts_with("failed 137 9")) << end;
  EXPECT_TRUE(end.ends_with(": memory limit of 64.0 MiB reached")) << end;
  EXPECT_FALSE(Cgroup::Find(StrCat("overcap-", world_.spec.id, "-1-0"))) << "the group was left behind";
}

TEST_F(AgentTest, IsCancelledByTerm) {
  world_.Shell("trap '' TERM; echo $$ > $DIR/pid; touch $DIR/ready; while :; do sleep 0.05; done");
  world_.Save();
  const pid_t agent = world_.Start();
  ASSERT_TRUE(world_.Appears("ready"));
  kill(agent, SIGHUP);  // ignored
  kill(agent, SIGTERM);
  EXPECT_EQ(world_.Wait(agent), 0);
  EXPECT_EQ(world_.End(), "cancelled 137 9");
  EXPECT_TRUE(world_.IsGone("pid"));
}

TEST_F(AgentTest, PassesUsr1On) {
  world_.Shell("trap 'echo warned; exit 0' USR1; touch $DIR/ready; while :; do sleep 0.01; done");
  world_.Save();
  const pid_t agent = world_.Start();
  ASSERT_TRUE(world_.Appears("ready"));
  kill(agent, SIGUSR1);
  EXPECT_EQ(world_.Wait(agent), 0);
  EXPECT_EQ(world_.End(), "succeeded 0 0");
  EXPECT_EQ(world_.File("rank-0.log"), "warned\n");
}

TEST_F(AgentTest, LeavesNothingRunning) {
  world_.Shell(
      "sleep 1000 & echo $! > $DIR/child; (setsid sleep 1000 >/dev/null 2>&1 & echo $! > $DIR/daemon); exit "
      "0");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_TRUE(world_.IsGone("child"));
  EXPECT_TRUE(world_.IsGone("daemon"));
}

// What the next test runs as an engine: `agent_test daemon ...`, with a child of its own.
TEST(EngineStandIn, DISABLED_LivesUntilItIsToldToEnd) {
  const std::string folder = getenv("DIR");
  std::ofstream(folder + (fork() == 0 ? "/child" : "/engine")) << getpid();
  EXPECT_TRUE(Eventually([&] { return access((folder + "/stop").c_str(), F_OK) == 0; }));
}

class AgentAndEngineTest : public AgentTest, public testing::WithParamInterface<int64_t> {};

TEST_P(AgentAndEngineTest, AnEngineThatARankStartedLivesOnWithAllItStarted) {
  world_.SetEnvironment({StrCat("EXE=", std::filesystem::read_symlink("/proc/self/exe").string())});
  world_.spec.id = StrCat("ada_1700000002_", "0000", getpid() % 9000 + 1000);
  world_.spec.resources.mem_bytes = GetParam();
  world_.Shell(
      "setsid $EXE daemon --gtest_also_run_disabled_tests --gtest_filter=EngineStandIn.* </dev/null "
      ">/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & echo $! > $DIR/stray;"
      "until [ -s $DIR/engine ] && [ -s $DIR/child ]; do sleep 0.01; done");
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_TRUE(world_.IsGone("stray"));
  EXPECT_FALSE(world_.IsGone("engine"));
  EXPECT_FALSE(world_.IsGone("child"));
  EXPECT_EQ(world_.Report().notes, std::vector<std::string>());
  std::ofstream(world_.Root() + "/stop");
  EXPECT_TRUE(Eventually([&] { return world_.IsGone("engine") && world_.IsGone("child"); }));
}

// With a limit there is a control group, where this machine gives one.
INSTANTIATE_TEST_SUITE_P(MemoryLimit, AgentAndEngineTest, testing::Values(0, int64_t{2} << 30));

TEST_F(AgentTest, TakesItsRanksAlongWhenItIsKilled) {
  world_.Shell("echo $$ > $DIR/pid; touch $DIR/ready; exec sleep 1000");
  world_.Save();
  const pid_t agent = world_.Start();
  ASSERT_TRUE(world_.Appears("ready"));
  kill(agent, SIGKILL);
  EXPECT_EQ(world_.Wait(agent), -1);
  EXPECT_EQ(world_.End(), "no end");
  EXPECT_TRUE(Eventually([&] { return world_.IsGone("pid"); }));
}

TEST_F(AgentTest, PinsTheRanks) {
  world_.spec.command = {"grep", "Cpus_allowed_list", "/proc/self/status"};
  world_.options.cpus = {0};
  EXPECT_EQ(world_.Run(), "succeeded 0 0");
  EXPECT_EQ(world_.File("rank-0.log"), "Cpus_allowed_list:\t0\n");
}

// The disk is full for the log, yet the rank ends well and its end is recorded.
TEST_F(AgentTest, SurvivesAFullDisk) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT ROOT: a full disk cannot be made";
  world_.Shell("head -c 8000000 /dev/zero; echo end");
  world_.Save();
  const std::string story = InChild([&]() -> std::string {
    const std::string disk = world_.Attempt();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "no mount";
    if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) return "no mount";
    world_.Wait(world_.Start());
    const AgentReport report = world_.Report();
    return StrCat(world_.End(), " | ", Join(report.notes, " | "));
  });
  if (story == "no mount") GTEST_SKIP() << "NO RIGHT TO MOUNT: a full disk cannot be made";
  EXPECT_TRUE(
      story.starts_with("succeeded 0 0 | output of rank 0 is dropped: its log cannot be written: "
                        "No space left on device | "))
      << story;
  EXPECT_TRUE(story.ends_with(" of output of rank 0 were dropped")) << story;
}

}  // namespace
}  // namespace overcap
