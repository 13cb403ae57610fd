// SPDX-License-Identifier: Apache-2.0
#include "sys/warning.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"

namespace overcap {
namespace {

using Kind = WarnedProcess::Kind;
using Pids = std::vector<pid_t>;

std::string Status(std::string_view name, std::string_view caught, std::string_view ignored = "0") {
  return StrCat("Name:\t", name, "\nPPid:\t1\nSigBlk:\t0000000000000200\nSigIgn:\t", ignored, "\nSigCgt:\t",
                caught, "\nCapInh:\t0000000000000200\n");
}

WarnedProcess Plain(pid_t pid, pid_t parent, bool catches) {
  return {pid, parent, Kind::kPlain, catches, false};
}

TEST(WarningTest, OnlyAHandlerIsAHandler) {
  EXPECT_TRUE(CatchesSignal(Status("python3", "0000000000000200"), SIGUSR1));
  EXPECT_FALSE(CatchesSignal(Status("python3", "0000000000000000"), SIGUSR1));
  EXPECT_FALSE(CatchesSignal(Status("python3", "0000000000000000", "0000000000000200"), SIGUSR1))
      << "ignored";
  EXPECT_FALSE(CatchesSignal(Status("python3", "0000000000000800"), SIGUSR1)) << "USR2";
  EXPECT_FALSE(CatchesSignal(Status("python3", "0000000000004002"), SIGUSR1)) << "TERM and INT";
  EXPECT_FALSE(CatchesSignal("", SIGUSR1)) << "it has ended";
  EXPECT_FALSE(CatchesSignal(Status("python3", "no mask"), SIGUSR1));
}

// bash catches all deadly signals for its EXIT trap, runs that, and ends by the signal.
TEST(WarningTest, AShellWithAnExitTrapHasNoHandlerForTheWarning) {
  EXPECT_FALSE(CatchesSignal(Status("bash", "0000000043817efb"), SIGUSR1));
  EXPECT_TRUE(CatchesSignal(Status("bash", "0000000043817efb"), SIGUSR1, true));
  EXPECT_TRUE(CatchesSignal(Status("bash", "0000000000010202"), SIGUSR1)) << "trap ... USR1";
  EXPECT_TRUE(CatchesSignal(Status("python3", "0000000043817efb"), SIGUSR1)) << "faulthandler";
}

TEST(WarningTest, WhatIsIgnoredIsTold) {
  EXPECT_TRUE(IgnoresSignal(Status("sh", "0", "0000000000000002"), SIGINT));
  EXPECT_FALSE(IgnoresSignal(Status("sh", "0000000000000002"), SIGINT));
}

TEST(WarningTest, EachProcessThatHandlesItIsWarnedAndNoOther) {
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), Plain(11, 10, true), Plain(12, 11, false), Plain(13, 11, true)},
                        false),
            (Pids{11, 13}));
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), Plain(11, 10, false)}, true), Pids());
  EXPECT_EQ(WhoIsWarned({}, true), Pids());
}

TEST(WarningTest, RanksOfALaunchAreLeftToTheLaunch) {
  const WarnedProcess launch{20, 10, Kind::kLaunch, false, false};
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, true), launch, Plain(21, 20, true), Plain(22, 21, true)}, false),
            (Pids{10, 20}));
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), launch, Plain(21, 20, false)}, true), Pids())
      << "none of its ranks handles it";
}

TEST(WarningTest, ALauncherThatPassesItToAllGetsItOnlyForOtherNodes) {
  const WarnedProcess srun{20, 10, Kind::kLauncher, false, false};
  const WarnedProcess step{30, 2, Kind::kPlain, true, true}, helper{31, 30, Kind::kPlain, false, true};
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), srun, step, helper}, false), Pids{30});
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), srun, step, helper}, true), Pids{20});
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), srun, helper}, true), Pids()) << "it would end them";
  EXPECT_EQ(WhoIsWarned({Plain(10, 1, false), step}, true), Pids{30}) << "a step without its srun";
  const WarnedProcess mpiexec{20, 10, Kind::kLauncher, true, false};
  EXPECT_EQ(WhoIsWarned({mpiexec, Plain(21, 20, true), Plain(22, 20, false)}, false), Pids{21});
  EXPECT_EQ(WhoIsWarned({mpiexec, Plain(21, 20, false)}, false), Pids()) << "its own handler does not count";
}

TEST(WarningTest, ACircleOfReusedNumbersEnds) {
  EXPECT_EQ(WhoIsWarned({Plain(10, 11, true), Plain(11, 10, true)}, false), (Pids{10, 11}));
}

}  // namespace
}  // namespace overcap
