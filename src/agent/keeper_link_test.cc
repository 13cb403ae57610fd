// SPDX-License-Identifier: Apache-2.0
#include "agent/keeper_link.h"

#include <gtest/gtest.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

using Heard = KeeperLink::Heard;

class KeeperLinkTest : public testing::Test {
 protected:
  KeeperLink Start(const std::string& script, std::vector<std::string> nodes = {}) {
    auto link =
        KeeperLink::Start({{"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"}, Log(), std::move(nodes)});
    EXPECT_TRUE(link) << link.error().message;
    return *std::move(link);
  }
  std::string Log() const { return dir_ / "log"; }
  static bool Never() { return false; }
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP()
        << "NOT TESTED: the race detector takes the steps of a program that is started for its parent's";
#endif
  }

  TempFolder dir_;
  PosixClock clock_;
};

TEST_F(KeeperLinkTest, IsReadyWhenAllNodesAreAndReleasedWhenAllHaveSaidSo) {
  KeeperLink link = Start(
      "echo place /tmp/x; echo note one; echo ready; echo place /tmp/y; echo ready; cat; "
      "echo unsaved b; echo released n1; echo released n2; sleep 100",
      {"n1", "n2"});
  EXPECT_EQ(link.AwaitReady(clock_, Never), Heard::kAll);
  EXPECT_EQ(link.words().place, "/tmp/x");
  EXPECT_EQ(link.words().notes, std::vector<std::string>{"one"});
  EXPECT_TRUE(link.words().released.empty());
  link.Release();
  EXPECT_EQ(link.AwaitReleased(clock_, KeeperLink::kSilentUs), Heard::kAll);
  EXPECT_EQ(link.words().released, (std::set<std::string>{"n1", "n2"}));
  EXPECT_EQ(link.words().unsaved, std::vector<std::string>{"b"});
}

TEST_F(KeeperLinkTest, OneThatFailsIsEnough) {
  KeeperLink link =
      Start("echo ready; echo failed no such bucket; echo failed later; cat; echo released n1", {"n1", "n2"});
  EXPECT_EQ(link.AwaitReady(clock_, Never), Heard::kFailed);
  EXPECT_EQ(link.words().failure, "no such bucket");
  link.Release();
  EXPECT_EQ(link.AwaitReleased(clock_, KeeperLink::kSilentUs), Heard::kGone);  // n2 says nothing more
  EXPECT_EQ(link.words().released, std::set<std::string>{"n1"});
}

TEST_F(KeeperLinkTest, OneThatEndsEarlyIsGoneAndItsWordsAreInTheLog) {
  KeeperLink link = Start("echo cannot >&2; echo ready", {"n1", "n2"});
  EXPECT_EQ(link.AwaitReady(clock_, Never), Heard::kGone);
  EXPECT_EQ(PosixFiles().Read(Log()).value_or(""), "cannot\n");
}

// Its time runs a thousand times faster.
class QuickClock : public PosixClock {
 public:
  int64_t MonotonicUs() const override { return PosixClock::MonotonicUs() * 1000; }
};

TEST_F(KeeperLinkTest, ANodeThatGivesNoSignOfLifeIsNotWaitedFor) {
  KeeperLink link = Start("echo released n1; echo ready; echo ready; while sleep 0.01; do echo beat n3; done",
                          {"n1", "n2"});
  ASSERT_EQ(link.AwaitReady(clock_, Never), Heard::kAll);
  EXPECT_EQ(link.AwaitReleased(QuickClock(), 100 * KeeperLink::kSilentUs), Heard::kGone);
  EXPECT_EQ(link.words().released, std::set<std::string>{"n1"});
}

TEST_F(KeeperLinkTest, OneThatOnlyGivesSignsOfLifeIsNotWaitedForEither) {
  KeeperLink link = Start("cat; while sleep 0.01; do echo beat n2; done", {"n2"});
  link.Release();
  EXPECT_EQ(link.AwaitReleased(clock_, 300'000), Heard::kGone);
}

TEST_F(KeeperLinkTest, StopsWhenItIsTold) {
  KeeperLink link = Start("cat");
  int looks = 0;
  EXPECT_EQ(link.AwaitReady(clock_, [&] { return ++looks > 2; }), Heard::kStopped);
}

TEST_F(KeeperLinkTest, OneThatSaysNothingForTooLongIsKilled) {
  KeeperLink link = Start("exec sleep 1000");
  EXPECT_EQ(link.AwaitReleased(clock_, 200'000), Heard::kGone);
  EXPECT_EQ(link.AwaitReleased(clock_, KeeperLink::kSilentUs), Heard::kGone);  // at once: it is dead
}

}  // namespace
}  // namespace overcap
