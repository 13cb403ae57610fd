// SPDX-License-Identifier: Apache-2.0
#include "launch/local/stacks.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/variables.h"

namespace overcap {
namespace {

int64_t In(int64_t us) {
  return PosixClock().MonotonicUs() + us;
}

TEST(CollectStack, TellsWhereEveryThreadOfAProcessIs) {
  const std::string text = CollectStack(getpid(), In(5'000'000));
  EXPECT_NE(text.find("thread " + std::to_string(getpid())), std::string::npos);
  EXPECT_NE(text.find("state"), std::string::npos);
}

TEST(CollectStack, SaysThatAProcessHasEnded) {
  EXPECT_NE(CollectStack(999'999'999, In(5'000'000)).find("has ended"), std::string::npos);
}

TEST(CollectStack, TellsOfTheChildrenToo) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", "sleep 100 & wait"};
  request.env = Variables::OfThisProcess().entries();
  const auto shell = Spawn(request);
  ASSERT_TRUE(shell.has_value());
  std::string text;
  while (text.find("sleep 100") == std::string::npos || text.find("process", 1) == std::string::npos) {
    text = CollectStack(shell->pid, In(5'000'000));
    ASSERT_EQ(waitpid(shell->pid, nullptr, WNOHANG), 0);
  }
  kill(-shell->pid, SIGKILL);
  waitpid(shell->pid, nullptr, 0);
}

// A Python that sleeps, and on PATH a py-spy that runs `script`.
class WithPySpy : public testing::Test {
 protected:
  void Begin(const std::string& script) {
    if (access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "NOT TESTED: no /usr/bin/python3";
    char name[] = "/tmp/overcap-stacks-XXXXXX";
    folder_ = mkdtemp(name);
    ASSERT_TRUE(PosixFiles().WriteAtomic(folder_ + "/py-spy", "#!/bin/sh\n" + script + "\n", false));
    ASSERT_EQ(chmod((folder_ + "/py-spy").c_str(), 0700), 0);
    path_ = getenv("PATH");
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
    SpawnRequest request;
    request.argv = {"/usr/bin/python3", "-I", "-S", "-c", "import time; time.sleep(100)"};
    request.env = Variables::OfThisProcess().entries();
    python_ = Spawn(request)->pid;
  }
  ~WithPySpy() override {
    if (python_ <= 0) return;
    kill(python_, SIGKILL);
    waitpid(python_, nullptr, 0);
    setenv("PATH", path_.c_str(), 1);
    (void)PosixFiles().RemoveTree(folder_);
  }
  pid_t python_ = -1;
  std::string folder_, path_;
};

TEST_F(WithPySpy, APythonIsDescribedByPySpy) {
  Begin("echo \"$@\"; echo 'main (train.py:7)'");
  if (python_ <= 0) return;
  EXPECT_EQ(CollectStack(python_, In(10'000'000)),
            "dump --pid " + std::to_string(python_) + "\nmain (train.py:7)\n");
}

TEST_F(WithPySpy, ThatFailsOrHangsTheKernelsViewIsGiven) {
  Begin("[ -e \"$0.hang\" ] && exec sleep 100; echo Permission denied; exit 1");
  if (python_ <= 0) return;
  EXPECT_NE(CollectStack(python_, In(10'000'000)).find("state"), std::string::npos);
  ASSERT_TRUE(PosixFiles().WriteAtomic(folder_ + "/py-spy.hang", "", false));
  const int64_t began = In(0);
  EXPECT_NE(CollectStack(python_, In(200'000)).find("state"), std::string::npos);
  EXPECT_LT(In(0) - began, 5'000'000);
}

TEST(CollectStacks, GivesATextForEveryProcessWithinItsTime) {
  const std::vector<std::string> texts = CollectStacks({getpid(), getppid(), 999'999'999}, In(0));
  ASSERT_EQ(texts.size(), 3u);
  for (const std::string& text : texts) EXPECT_FALSE(text.empty());
}

}  // namespace
}  // namespace overcap
