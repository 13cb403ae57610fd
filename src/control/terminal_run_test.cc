// SPDX-License-Identifier: Apache-2.0
#include "control/terminal_run.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

bool IsTold(std::string_view line) {
  return line == "srun: told";
}

TEST(StderrFilter, ChatterGoesWhereverItIsCut) {
  const std::string text = "a\nsrun: told\nsrun: error\r\nx srun: told\nsrun: told";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    StderrFilter filter("srun", IsTold);
    std::string passed = filter.Take(std::string_view(text).substr(0, cut));
    passed += filter.Take(std::string_view(text).substr(cut));
    EXPECT_EQ(passed + filter.Finish(), "a\nsrun: error\r\nx srun: told\n") << cut;
  }
}

TEST(StderrFilter, WhatCannotBecomeChatterIsNotKeptBack) {
  StderrFilter filter("srun", IsTold);
  EXPECT_EQ(filter.Take("50%\r"), "50%\r");
  EXPECT_EQ(filter.Take("srun: told"), "srun: told");
  EXPECT_EQ(filter.Take("\nsr"), "\n");
  EXPECT_EQ(filter.Finish(), "sr");
}

RC_GTEST_PROP(StderrFilterProperty, WithoutChatterEveryByteComesThrough,
              (const std::vector<std::string>& pieces)) {
  StderrFilter filter("srun", [](std::string_view) { return false; });
  std::string all, passed;
  for (const std::string& piece : pieces) all += piece, passed += filter.Take(piece);
  RC_ASSERT(passed + filter.Finish() == all);
}

Replacement Program(std::vector<std::string> argv) {
  Replacement plan;
  plan.program = "/bin/" + argv[0];
  plan.argv = std::move(argv);
  plan.environment = {"PATH=/usr/bin:/bin"};
  return plan;
}

TEST(TerminalRun, TheStatusIsTheProgramsOwn) {
  const auto run = RunOnTerminal(Program({"false"}), {});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->exit_status, 1);
  EXPECT_FALSE(run->interrupted);
}

TEST(TerminalRun, AProgramThatIsNotThereIsAnError) {
  EXPECT_FALSE(RunOnTerminal(Program({"no-such-program-here"}), {}));
}

}  // namespace
}  // namespace overcap
