// SPDX-License-Identifier: Apache-2.0
#include "launch/link/head_state.h"

#include <gtest/gtest.h>
#include <limits>
#include <signal.h>

namespace overcap::node_link {
namespace {

using Order = HeadState::Order;
using Cause = AttemptEnd::Cause;
constexpr int64_t kSecond = 1'000'000;

// Three hosts with two ranks each.
struct World {
  Attempt attempt;
  int64_t now = 100 * kSecond;
  std::unique_ptr<HeadState> state;

  explicit World(int64_t idle_us = 0) {
    attempt.plan.world_size = 6;
    for (int i = 0; i < 3; ++i) attempt.plan.hosts.push_back({"n" + std::to_string(i), 2 * i, 2, 0});
    attempt.grace_us = 2 * kSecond;
    attempt.idle_us = idle_us;
    state = std::make_unique<HeadState>(attempt, now);
  }
  HeadState* operator->() { return state.get(); }

  void StartAll() {
    for (int i = 0; i < 3; ++i) state->OnHello(i, now);
    EXPECT_EQ(state->TakeOrders(), std::vector{Order::kStart});
    for (int rank = 0; rank < 6; ++rank) state->OnBegun(rank);
  }
  void End(int rank, ProcessEnd end, bool known = true) {
    RankFailure how;
    how.rank = rank;
    how.end = end;
    how.end_known = known;
    state->OnEnded(how, now);
  }
  void AllGone() {
    for (int i = 0; i < 3; ++i) state->OnNothingLeft(i, now);
  }
  void PassTime(int64_t us) {
    now += us;
    state->OnTime(now);
  }
  // To the next deadline.
  bool Skip() {
    if (state->NextUs() == std::numeric_limits<int64_t>::max()) return false;
    now = std::max(now, state->NextUs());
    state->OnTime(now);
    return true;
  }
};

TEST(HeadState, StartsWhenTheLastHostHasSaidHello) {
  World world;
  world->OnHello(0, world.now);
  world->OnHello(2, world.now);
  EXPECT_TRUE(world->TakeOrders().empty());
  world->OnHello(1, world.now);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStart});
}

TEST(HeadState, IsDoneWhenNothingIsLeftOnAnyHost) {
  World world;
  world.StartAll();
  for (int rank = 0; rank < 6; ++rank) world.End(rank, {0, 0});
  world->OnNothingLeft(0, world.now);
  world->OnNothingLeft(1, world.now);
  EXPECT_FALSE(world->Done());
  world->OnNothingLeft(2, world.now);
  EXPECT_TRUE(world->Done());
  EXPECT_EQ(world->End().cause, Cause::kDone);
  EXPECT_TRUE(world->TakeOrders().empty());
}

TEST(HeadState, BlamesTheRankThatWasToldFirstAndStopsTheRest) {
  World world;
  world.StartAll();
  world.End(1, {0, 0});
  world.End(3, {7, 0});
  world.End(0, {143, SIGTERM});
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStop});
  EXPECT_EQ(world->StopGraceUs(), 2 * kSecond);
  world.AllGone();
  EXPECT_TRUE(world->Done());
  EXPECT_EQ(world->End().cause, Cause::kRankFailed);
  EXPECT_EQ(world->End().first->rank, 3);
  EXPECT_EQ(world->End().first->end.exit_status, 7);
  EXPECT_TRUE(world->End().bad_hosts.empty());
}

TEST(HeadState, GivesUpOnHostsThatDoNotStopInTime) {
  World world;
  world->OnChildren(3, world.now);
  world.StartAll();
  world.End(3, {7, 0});
  world->OnNothingLeft(0, world.now);
  (void)world->TakeOrders();
  world.PassTime(2 * kSecond + 4 * kSecond);
  EXPECT_TRUE(world->TakeOrders().empty());
  world.PassTime(kSecond);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kGiveUp});
  EXPECT_EQ(world->End().notes.size(), 2u);
  EXPECT_FALSE(world->Done());
  world->OnChildren(0, world.now);
  EXPECT_TRUE(world->Done());
}

TEST(HeadState, NamesAllHostsThatDoNotAnswerInTime) {
  World world;
  world->OnHello(1, world.now);
  world.PassTime(10 * kSecond - 1);
  EXPECT_FALSE(world->Stopping());
  world.PassTime(1);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStop});
  EXPECT_EQ(world->End().cause, Cause::kHostFailed);
  EXPECT_EQ(world->End().code, ErrorCode::kUsage);
  EXPECT_EQ(world->End().message, "hosts 'n0', 'n2' did not answer within 10 s");
  EXPECT_EQ(world->End().bad_hosts, (std::vector<std::string>{"n0", "n2"}));
  world->OnNothingLeft(1, world.now);
  EXPECT_TRUE(world->Done());
}

TEST(HeadState, LetsATransportHaveMoreTimeForOneHost) {
  World world;
  world->OnHello(0, world.now);
  world->OnHello(1, world.now);
  world->OnClosing(2, world.now);
  world->AllowUntil(2, world.now + 60 * kSecond);
  world.PassTime(59 * kSecond);
  EXPECT_FALSE(world->Stopping());
  world.PassTime(kSecond);
  EXPECT_TRUE(world->Stopping());
}

TEST(HeadState, TakesAClosedLinkForALostHostAfterAMoment) {
  World world;
  world.StartAll();
  world->OnClosing(1, world.now);
  EXPECT_FALSE(world->Stopping());
  world.PassTime(kSecond);
  EXPECT_EQ(world->End().cause, Cause::kHostFailed);
  EXPECT_EQ(world->End().code, ErrorCode::kUnavailable);
  EXPECT_EQ(world->End().message, "host 'n1' is lost: its connection was closed");
}

TEST(HeadState, PrefersWhatTheTransportKnowsAboutALostHost) {
  World world;
  world.StartAll();
  world->OnClosing(1, world.now);
  world->OnLost(1, "host 'n1' is lost: no route", world.now);
  world.PassTime(kSecond);
  EXPECT_EQ(world->End().message, "host 'n1' is lost: no route");
  EXPECT_EQ(world->End().bad_hosts, std::vector<std::string>{"n1"});
}

TEST(HeadState, RemembersAHostThatIsLostAfterARankOfAnotherOneFailed) {
  World world;
  world.StartAll();
  world.End(0, {1, 0});
  world->OnLost(2, "host 'n2' is lost", world.now);
  EXPECT_EQ(world->End().cause, Cause::kRankFailed);
  EXPECT_EQ(world->End().bad_hosts, std::vector<std::string>{"n2"});
}

TEST(HeadState, IgnoresAClosedLinkAfterTheHostHasFinished) {
  World world;
  world.StartAll();
  for (int rank = 0; rank < 6; ++rank) world.End(rank, {0, 0});
  world->OnNothingLeft(1, world.now);
  world->OnClosing(1, world.now);
  world.PassTime(10 * kSecond);
  EXPECT_FALSE(world->Stopping());
}

TEST(HeadState, CancelsAndThenKillsWhenAskedTwice) {
  World world;
  world.StartAll();
  world->OnSignal(SIGINT, world.now);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStop});
  EXPECT_EQ(world->StopGraceUs(), 2 * kSecond);
  world->OnSignal(SIGINT, world.now + 1000);  // the same word, sent to the process and to its group
  EXPECT_EQ(world->StopGraceUs(), 2 * kSecond);
  world.now += kSecond / 2;
  world->OnSignal(SIGINT, world.now);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStop});
  EXPECT_EQ(world->StopGraceUs(), 0);
  world.AllGone();
  EXPECT_EQ(world->End().cause, Cause::kCancelled);
  EXPECT_EQ(world->End().signal, SIGINT);
}

TEST(HeadState, CollectsStacksBeforeItStopsSilentRanks) {
  World world(30 * kSecond);
  world.StartAll();
  world.PassTime(20 * kSecond);
  world->OnOutput(world.now);
  world.PassTime(29 * kSecond);
  EXPECT_TRUE(world->TakeOrders().empty());
  world.PassTime(kSecond);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStacks});
  world.End(5, {0, 0});
  for (int rank = 0; rank < 4; ++rank) world->OnStack(rank, "in main", world.now);
  EXPECT_TRUE(world->TakeOrders().empty());
  world->OnStack(4, "in wait", world.now);
  EXPECT_EQ(world->TakeOrders(), (std::vector{Order::kWriteStacks, Order::kStop}));
  EXPECT_EQ(world->StacksText().substr(0, 39), "== rank 0 on host 'n0'\nin main\n\n== rank");
  world.AllGone();
  EXPECT_EQ(world->End().cause, Cause::kIdle);
}

TEST(HeadState, WaitsOnlySoLongForStacks) {
  World world(30 * kSecond);
  world.StartAll();
  world.PassTime(30 * kSecond);
  (void)world->TakeOrders();
  world.PassTime(8 * kSecond);
  EXPECT_EQ(world->TakeOrders(), (std::vector{Order::kWriteStacks, Order::kStop}));
  EXPECT_NE(world->StacksText().find("did not tell"), std::string::npos);
}

TEST(HeadState, EndsALauncherThatStaysThoughItsRanksAreGone) {
  World world;
  world->OnChildren(1, world.now);
  world.StartAll();
  for (int rank = 0; rank < 6; ++rank) world.End(rank, {0, 0});
  world.AllGone();
  EXPECT_FALSE(world->Done());
  world.PassTime(5 * kSecond);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kTermChildren});
  world.PassTime(kSecond);
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kKillChildren});
  world->OnCommonChildEnd({137, SIGKILL}, "mpirun was killed", world.now);
  world->OnChildren(0, world.now);
  EXPECT_TRUE(world->Done());
  EXPECT_EQ(world->End().cause, Cause::kDone);
}

TEST(HeadState, SaysWhatALauncherSaidThatEndedBeforeItsRanksBegan) {
  World world;
  world->OnChildren(1, world.now);
  world->OnHello(0, world.now);
  world->OnCommonChildEnd({1, 0}, "'srun' ended: no such partition", world.now);
  world->OnChildren(0, world.now);
  EXPECT_FALSE(world->Stopping());
  EXPECT_TRUE(world.Skip());
  EXPECT_EQ(world->End().cause, Cause::kCannotRun);
  EXPECT_EQ(world->End().message, "'srun' ended: no such partition");
  EXPECT_EQ(world->TakeOrders(), std::vector{Order::kStop});
}

TEST(HeadState, TakesTheLaunchersStatusForARankWhoseOwnNobodyTold) {
  World world;
  world->OnChildren(1, world.now);
  world.StartAll();
  world.End(4, {-1, 0}, false);
  world.End(2, {-1, 0}, false);
  EXPECT_FALSE(world->Stopping());
  world->OnCommonChildEnd({9, 0}, "'mpiexec' ended with 9", world.now);
  world->OnChildren(0, world.now);
  world.AllGone();
  EXPECT_TRUE(world.state->TakeOrders() == std::vector{Order::kStop});
  EXPECT_TRUE(world->Done());
  EXPECT_EQ(world->End().cause, Cause::kRankFailed);
  EXPECT_EQ(world->End().first->rank, 4);
  EXPECT_EQ(world->End().first->end.exit_status, 9);
}

// Whatever happens, the clock alone brings it to an end once something is to blame.
TEST(HeadState, AlwaysEndsAfterAFailureEvenIfNobodyAnswersAnyMore) {
  for (int case_number = 0; case_number < 5; ++case_number) {
    World world(30 * kSecond);
    world->OnChildren(2, world.now);
    if (case_number > 0) world.StartAll();
    if (case_number == 1) world.End(0, {1, 0});
    if (case_number == 2) world->OnSignal(SIGTERM, world.now);
    if (case_number == 3) world->OnLost(0, "gone", world.now);
    int steps = 0;
    while (!world->Done() && ++steps < 100) {
      (void)world->TakeOrders();
      if (!world.Skip()) break;
    }
    (void)world->TakeOrders();
    EXPECT_TRUE(world->Done()) << case_number;
  }
}

}  // namespace
}  // namespace overcap::node_link
