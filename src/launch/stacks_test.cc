// SPDX-License-Identifier: Apache-2.0
#include "launch/stacks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
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

TEST(CollectStacks, GivesATextForEveryProcessWithinItsTime) {
  const std::vector<std::string> texts = CollectStacks({getpid(), getppid(), 999'999'999}, In(0));
  ASSERT_EQ(texts.size(), 3u);
  for (const std::string& text : texts) EXPECT_FALSE(text.empty());
}

}  // namespace
}  // namespace overcap
