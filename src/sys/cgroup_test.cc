// SPDX-License-Identifier: Apache-2.0
// On the real kernel: skipped, and says so, where this user is given no control group.
#include "sys/cgroup.h"

#include <cstring>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;

class CgroupTest : public testing::Test {
 protected:
  ~CgroupTest() override {
    if (!group_) return;
    EXPECT_TRUE(group_->KillAll(milliseconds(5000)));
    Reap();
    EXPECT_TRUE(group_->Remove(milliseconds(5000)));
  }

  // False when the machine gives none: then the test has been skipped.
  bool Make(int64_t memory_bytes, const std::string& cpus) {
    name_ =
        StrCat("overcap-test-", getpid(), "-", testing::UnitTest::GetInstance()->current_test_info()->name());
    auto made = Cgroup::Create({name_, memory_bytes, cpus});
    if (made) {
      group_ = std::move(*made);
      return true;
    }
    EXPECT_EQ(made.error().code, ErrorCode::kUnavailable);
    [&] { GTEST_SKIP() << "NOT TESTED, no control group here: " << made.error().message; }();
    return false;
  }

  // A child that joins as a rank does, then runs `body`.
  template <typename Body>
  pid_t Start(Body body) {
    const pid_t pid = fork();
    if (pid != 0) return children_.emplace_back(pid);
    for (const std::string& file : group_->ProcsFiles()) {
      FILE* procs = fopen(file.c_str(), "w");
      if (procs == nullptr || fputs("0", procs) < 0 || fclose(procs) != 0) _exit(99);
    }
    body();
    _exit(0);
  }
  int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    std::erase(children_, pid);
    return status;
  }
  void Reap() {
    while (!children_.empty()) Wait(children_.back());
  }
  void AwaitProcesses(size_t count) {
    for (int i = 0; i < 5000 && group_->Processes().size() < count; ++i) usleep(1000);
    EXPECT_GE(group_->Processes().size(), count);
  }

  std::string name_;
  std::optional<Cgroup> group_;
  std::vector<pid_t> children_;
};

TEST_F(CgroupTest, KillsEverythingInItAlsoWhatLeftItsSession) {
  if (!Make(0, "")) return;
  Start([] {
    setsid();
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) setsid();
    for (;;) pause();
  });
  AwaitProcesses(2);
  EXPECT_TRUE(group_->KillAll(milliseconds(5000)));
  EXPECT_TRUE(group_->Processes().empty());
  EXPECT_EQ(group_->OomKills(), 0);
}

TEST_F(CgroupTest, KillsUnderTheHierarchyThatLimitsMemoryToo) {
  if (!Make(256 << 20, "")) return;
  EXPECT_TRUE(group_->LimitsMemory());
  Start([] {
    for (;;) pause();
  });
  AwaitProcesses(1);
  EXPECT_TRUE(group_->KillAll(milliseconds(5000)));
  EXPECT_TRUE(group_->Processes().empty());
}

TEST_F(CgroupTest, AProcessOverTheMemoryLimitIsKilledAndThatIsKnown) {
  if (!Make(32 << 20, "")) return;
  const pid_t pid = Start([] {
    constexpr size_t kBytes = 256 << 20;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memset(memory, 1, kBytes);
  });
  const int status = Wait(pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(group_->OomKills(), 1);
}

TEST_F(CgroupTest, AProcessStaysOnTheGivenProcessors) {
  if (!Make(0, "0")) return;
  if (!group_->LimitsCpus()) GTEST_SKIP() << "NOT TESTED, no cpuset here";
  const pid_t pid = Start([] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    _exit(CPU_COUNT(&cpus) == 1 && CPU_ISSET(0, &cpus) ? 0 : 1);
  });
  EXPECT_EQ(Wait(pid), 0);
}

TEST_F(CgroupTest, AddProcessMovesARunningProcess) {
  if (!Make(64 << 20, "")) return;
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  children_.push_back(pid);
  EXPECT_TRUE(group_->AddProcess(pid));
  EXPECT_EQ(group_->Processes(), std::vector<pid_t>{pid});
}

TEST_F(CgroupTest, AReleasedProcessIsNotKilledWithTheRest) {
  if (!Make(64 << 20, "")) return;
  const auto wait_for_ever = [] {
    for (;;) pause();
  };
  const pid_t kept = Start(wait_for_ever);
  Start(wait_for_ever);
  AwaitProcesses(2);
  EXPECT_TRUE(group_->Release(kept));
  EXPECT_TRUE(group_->KillAll(milliseconds(5000)));
  EXPECT_EQ(waitpid(kept, nullptr, WNOHANG), 0);
  kill(kept, SIGKILL);
}

TEST_F(CgroupTest, OneLeftBehindIsFoundAgainAndItsNameIsTaken) {
  if (!Make(64 << 20, "0")) return;
  EXPECT_EQ(Cgroup::Create({name_, 64 << 20, "0"}).error().code, ErrorCode::kConflict);
  auto found = Cgroup::Find(name_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ProcsFiles(), group_->ProcsFiles());
  EXPECT_TRUE(found->Remove(milliseconds(1000)));
  EXPECT_EQ(Cgroup::Find(name_).error().code, ErrorCode::kNotFound);
}

TEST_F(CgroupTest, RemoveFailsInTimeWhileSomethingRunsInIt) {
  if (!Make(64 << 20, "")) return;
  Start([] {
    for (;;) pause();
  });
  AwaitProcesses(1);
  EXPECT_EQ(group_->Remove(milliseconds(5)).error().code, ErrorCode::kUnavailable);
}

TEST_F(CgroupTest, GroupsThatAJobMadeInsideGoWithIt) {
  if (!Make(64 << 20, "")) return;
  for (const std::string& file : group_->ProcsFiles()) {
    const std::string folder = file.substr(0, file.rfind('/')) + "/inner";
    EXPECT_EQ(mkdir(folder.c_str(), 0700), 0);
  }
  EXPECT_TRUE(group_->Remove(milliseconds(1000)));
  EXPECT_EQ(Cgroup::Find(name_).error().code, ErrorCode::kNotFound);
}

TEST_F(CgroupTest, ANameThatIsAPathIsRefused) {
  for (const char* name : {"", "a/b", "..", "."}) {
    EXPECT_EQ(Cgroup::Create({name, 0, ""}).error().code, ErrorCode::kUsage) << name;
  }
}

}  // namespace
}  // namespace overcap
