// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kNow = 1'700'000'000'000'000, kMinute = 60'000'000;

AutoState Running() {
  AutoState state;
  state.workspace = "w";
  state.id = "0123";
  state.host = "n1";
  state.folder = "/scratch/\xff";
  state.pid = 4711;
  state.rules = "every 30m";
  state.doing = "waits";
  state.beat_us = kNow - kMinute;
  state.saved_us = kNow - 3 * kMinute;
  state.next_us = kNow + 27 * kMinute;
  return state;
}

TEST(AutoState, WhatIsWrittenIsRead) {
  AutoState state = Running();
  state.error = "a 'b'";
  state.failures = 2;
  state.job_end_us = kNow;
  EXPECT_EQ(AutoStateFromJson(AutoStateToJson(state), "f").value(), state);
}

TEST(AutoState, OneLineTellsHowItGoes) {
  EXPECT_EQ(AutoLines(Running(), AutoLife::kRuns, kNow),
            std::vector<std::string>{
                "saves by itself on n1 (pid 4711, every 30m); last backup 3m ago, next in 27m"});
}

TEST(AutoState, WhatPeopleShouldWorryAboutIsTold) {
  AutoState state = Running();
  state.failures = 2;
  state.error = "'/nfs' is not there";
  const auto lines = AutoLines(state, AutoLife::kRuns, kNow);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "the last 2 tries failed: '/nfs' is not there");
}

TEST(AutoState, OneOfAnOlderVersionIsRead) {
  std::string text = AutoStateToJson(Running());
  text.insert(1, R"("watch": "inotify", "watch_note": "", "watched": true, "changed_us": 5, )");
  text.replace(text.find("every 30m"), 9, "on change");
  AutoState expected = Running();
  expected.rules = "on change";
  EXPECT_EQ(AutoStateFromJson(text, "f").value(), expected);
}

TEST(AutoState, OnAnotherHostItsBeatTellsWhetherItLives) {
  AutoState state = Running();
  EXPECT_EQ(LifeOf(state, "n2", kNow), AutoLife::kRuns);
  EXPECT_EQ(LifeOf(state, "n2", kNow + 5 * kMinute), AutoLife::kSilent);
  state.doing = "ended";
  EXPECT_EQ(LifeOf(state, "n2", kNow), AutoLife::kEnded);
}

TEST(AutoState, OnItsOwnHostItsLockTellsWhetherItLives) {
  const TempFolder temp;
  AutoState state = Running();
  state.folder = temp.Path();
  EXPECT_EQ(LifeOf(state, "n1", kNow), AutoLife::kDied);
  ASSERT_TRUE(PosixFiles().MakeFolders(temp.Path() + "/.overcap"));
  ASSERT_TRUE(PosixFiles().WriteAtomic(AutoLockFile(temp.Path()), "4711\n", false));
  EXPECT_EQ(LifeOf(state, "n1", kNow), AutoLife::kDied);
  const Fd held(open(AutoLockFile(temp.Path()).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(held.Get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(AutoLockHolder(temp.Path()), 4711);
  EXPECT_EQ(LifeOf(state, "n1", kNow), AutoLife::kRuns);
  state.pid = 4712;
  EXPECT_EQ(LifeOf(state, "n1", kNow), AutoLife::kDied);
}

TEST(AutoState, OneThatIsDyingIsWaitedForAndOneThatLivesIsNot) {
  const TempFolder temp;
  ASSERT_TRUE(PosixFiles().MakeFolders(temp.Path() + "/.overcap"));
  const auto hold = [&](pid_t pid) {
    (void)PosixFiles().WriteAtomic(AutoLockFile(temp.Path()), StrCat(pid, "\n"), false);
    Fd held(open(AutoLockFile(temp.Path()).c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(flock(held.Get(), LOCK_EX | LOCK_NB), 0);
    return held;
  };
  EXPECT_EQ(LastingLockHolder(temp.Path(), 0), 0);
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  Fd held = hold(ended);
  EXPECT_EQ(LastingLockHolder(temp.Path(), 50'000), ended) << "for so long only";
  std::thread lets_go([&] {
    usleep(100'000);
    held.Reset();
  });
  EXPECT_EQ(LastingLockHolder(temp.Path(), 600'000'000), 0);
  lets_go.join();
  held = hold(getpid());
  EXPECT_EQ(LastingLockHolder(temp.Path(), 3'600'000'000), getpid());
}

TEST(AutoState, ThoseOfAllHostsAreFoundTheNewestFirst) {
  const TempFolder temp;
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(temp.Path() + "/workspaces/w/auto"));
  AutoState state = Running();
  ASSERT_TRUE(files.WriteAtomic(AutoStateFile(temp.Path(), "w", "n1"), AutoStateToJson(state), false));
  state.host = "a/b";
  state.beat_us += 5;
  ASSERT_TRUE(files.WriteAtomic(AutoStateFile(temp.Path(), "w", "a/b"), AutoStateToJson(state), false));
  ASSERT_TRUE(files.WriteAtomic(AutoStateFile(temp.Path(), "w", "bad"), "{", false));
  const auto states = ReadAutoStates(temp.Path(), "w");
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].host, "a/b");
  EXPECT_EQ(ReadAutoState(temp.Path(), "w", "n1")->host, "n1");
  EXPECT_FALSE(ReadAutoState(temp.Path(), "w", "n9"));
}

}  // namespace
}  // namespace overcap
