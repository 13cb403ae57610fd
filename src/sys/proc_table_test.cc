// SPDX-License-Identifier: Apache-2.0
#include "sys/proc_table.h"

#include <algorithm>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

// A shell that has one child of its own; both block until the test ends, then are killed and waited for.
class Family {
 public:
  explicit Family(const std::string& entry = "A=1") {
    int input[2], output[2];
    if (pipe(input) != 0 || pipe(output) != 0) abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input[0], 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], 1);
    posix_spawn_file_actions_addclose(&actions, input[1]);
    const char* argv[] = {"/bin/sh", "-c", "exec 3<&0; cat <&3 & echo $!; wait", nullptr};
    const char* env[] = {"PATH=/usr/bin:/bin", entry.c_str(), nullptr};
    if (posix_spawn(&pid, argv[0], &actions, nullptr, const_cast<char**>(argv), const_cast<char**>(env)) != 0)
      abort();
    posix_spawn_file_actions_destroy(&actions);
    close(input[0]), close(output[1]);
    input_ = input[1];
    char text[32] = {};
    if (read(output[0], text, sizeof text - 1) > 0)
      child = static_cast<pid_t>(ParseInt(Trim(text)).value_or(0));
    close(output[0]);
  }
  ~Family() {
    if (input_ >= 0) close(input_);  // ends the child
    if (pid > 0) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }
  void KillWithoutWaiting() {
    kill(pid, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  }
  void Reap() { waitpid(pid, nullptr, 0), pid = -1; }

  pid_t pid = -1;
  pid_t child = -1;

 private:
  int input_ = -1;
};

TEST(ProcTableTest, ParsesARowWhoseCommandHasBracketsAndBlanks) {
  const auto row =
      ParseProcessRow("42 (a) b) (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1000 1\n");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->pid, 42);
  EXPECT_EQ(row->parent, 7);
  EXPECT_EQ(row->state, 'S');
  EXPECT_EQ(row->start_ticks, 98765u);
}

TEST(ProcTableTest, RefusesRowsThatAreCutOff) {
  const std::string whole = "42 (x) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1000";
  for (const size_t length :
       {size_t{0}, size_t{3}, size_t{5}, size_t{7}, size_t{20}, whole.rfind(" 98765")}) {
    EXPECT_FALSE(ParseProcessRow(whole.substr(0, length))) << length;
  }
}

TEST(ProcTableTest, ThisProcessIsAliveUntilItsStartOrBootDiffers) {
  auto self = Identify(getpid());
  ASSERT_TRUE(self);
  EXPECT_FALSE(self->boot_id.empty());
  EXPECT_TRUE(IsAlive(*self));
  auto reused = *self;
  reused.start_ticks += 1;
  EXPECT_FALSE(IsAlive(reused));
  auto rebooted = *self;
  rebooted.boot_id = "another";
  EXPECT_FALSE(IsAlive(rebooted));
}

TEST(ProcTableTest, AZombieAndAReapedProcessAreNotAlive) {
  Family family;
  const auto identity = Identify(family.pid);
  ASSERT_TRUE(identity);
  EXPECT_TRUE(IsAlive(*identity));
  family.KillWithoutWaiting();
  EXPECT_FALSE(IsAlive(*identity));
  EXPECT_FALSE(Identify(family.pid));
  family.Reap();
  EXPECT_FALSE(IsAlive(*identity));
}

TEST(ProcTableTest, FindsChildrenOfChildren) {
  Family family;
  EXPECT_EQ(ChildrenOf(family.pid), std::vector<pid_t>{family.child});
  const std::vector<pid_t> all = ChildrenOf(getpid());
  const auto parent = std::find(all.begin(), all.end(), family.pid);
  const auto child = std::find(all.begin(), all.end(), family.child);
  EXPECT_TRUE(parent != all.end() && child != all.end() && parent < child);
}

TEST(ProcTableTest, FindsThemByALookAtTheFamilyToo) {
  Family family;
  EXPECT_EQ(LikelyChildrenOf(family.pid), std::vector<pid_t>{family.child});
  const std::vector<pid_t> all = LikelyChildrenOf(getpid());
  const auto parent = std::find(all.begin(), all.end(), family.pid);
  const auto child = std::find(all.begin(), all.end(), family.child);
  EXPECT_TRUE(parent != all.end() && child != all.end() && parent < child);
  EXPECT_TRUE(LikelyChildrenOf(-5).empty());
}

TEST(ProcTableTest, FindsProcessesByAnExactEntryOfTheirEnvironment) {
  const std::string entry = StrCat("OVERCAP_JOB_ID=test_", getpid());
  Family family(entry);
  std::vector<pid_t> found = ProcessesWithEnvironment(entry);
  std::sort(found.begin(), found.end());
  std::vector<pid_t> expected = {family.pid, family.child};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(ProcessesWithEnvironment(entry.substr(0, entry.size() - 1)).empty());
  EXPECT_TRUE(ProcessesWithEnvironment(entry.substr(1)).empty());
}

// Between the old program and the new one a process seems to have no environment at all.
TEST(ProcTableTest, FindsAProcessThatKeepsStartingPrograms) {
  const std::string entry = StrCat("OVERCAP_JOB_ID=busy_", getpid());
  const char* argv[] = {"/bin/sh", "-c", "exec /bin/sh -c \"$AGAIN\"", nullptr};
  const char* env[] = {entry.c_str(), "AGAIN=exec /bin/sh -c \"$AGAIN\"", nullptr};
  pid_t pid = -1;
  ASSERT_EQ(posix_spawn(&pid, argv[0], nullptr, nullptr, const_cast<char**>(argv), const_cast<char**>(env)),
            0);
  int missed = 0;
  for (int look = 0; look < 300; ++look) missed += ProcessesWithEnvironment(entry).size() != 1;
  kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  EXPECT_EQ(missed, 0);
}

TEST(ProcTableTest, MemoryGrowsWithWhatIsTouchedAndVanishedProcessesHaveNone) {
  const int64_t before = ResidentBytes({getpid()});
  std::string big(64 << 20, 'x');
  EXPECT_EQ(big[big.size() / 2], 'x');
  EXPECT_GE(ResidentBytes({getpid()}), before + (60 << 20));
  EXPECT_GE(ProportionalBytes({getpid()}), 60 << 20);
  EXPECT_EQ(ResidentBytes({-5}), 0);
  EXPECT_EQ(ProportionalBytes({-5}), 0);
}

TEST(ProcTable, KnowsWhoHasAFileOpen) {
  int pipes[2][2];
  ASSERT_EQ(pipe2(pipes[0], O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(pipes[1], O_CLOEXEC), 0);
  EXPECT_TRUE(HaveOpen({getpid()}, {pipes[1][0], pipes[0][0]}));
  const Family family;
  EXPECT_FALSE(HaveOpen({family.pid, family.child}, {pipes[0][0], pipes[1][1]}));
  EXPECT_FALSE(HaveOpen({getpid()}, {}));
  for (const auto& ends : pipes) close(ends[0]), close(ends[1]);
}

}  // namespace
}  // namespace overcap
