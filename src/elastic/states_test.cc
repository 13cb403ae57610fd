// SPDX-License-Identifier: Apache-2.0
// Both state machines, word by word; simulation_test.cc has them together.
#include <gtest/gtest.h>

#include "elastic/leader_state.h"
#include "elastic/member_state.h"

namespace overcap::elastic {
namespace {

constexpr int64_t kSecond = 1'000'000;

LeaderConfig Config(int least, int most) {
  LeaderConfig config;
  config.min_nodes = least;
  config.max_nodes = most;
  config.max_restarts = 1;
  config.last_call_us = kSecond;
  config.version = "1";
  return config;
}

// A leader and what its members, who are only numbers here, are told.
class Leader {
 public:
  explicit Leader(LeaderConfig config) : state(std::move(config), {}, 1, 0, 0) {}

  void Join(int member, int ranks = 2) {
    JoinRequest join;
    join.version = "1";
    join.agent = join.host = std::string("n") + std::to_string(member);
    join.address = "10.0.0." + std::to_string(member);
    join.ranks = ranks;
    state.OnJoin(member, join, now);
    Say(member, 0, RanksState::kIdle);
  }
  void Say(int member, int64_t epoch, RanksState ranks,
           std::optional<ElasticFailure> failure = std::nullopt) {
    MemberReport report = reports[member];
    ++report.seq;
    report.sent_us = now;
    report.epoch = epoch;
    report.state = ranks;
    report.port = 1000 + member;
    report.failure = std::move(failure);
    reports[member] = report;
    state.OnReport(member, report, now);
    Turn();
  }
  void Beat(int member) { state.OnBeat(member, {reports[member].seq, now}, now); }
  void Turn() {
    state.OnTime(now);
    while (auto record = state.TakeStore()) {
      state.OnStored(*record, now);
      state.OnTime(now);
    }
    for (auto& [member, message] : state.TakeMessages()) {
      if (auto* answer = std::get_if<LeaderAnswer>(&message)) told[member] = *answer;
      if (auto* refusal = std::get_if<Refusal>(&message)) refused = refusal->message;
    }
  }
  template <typename T>
  const T* Told(int member) {
    return std::get_if<T>(&told[member].order);
  }

  LeaderState state;
  int64_t now = 0;
  std::map<int, MemberReport> reports;
  std::map<int, LeaderAnswer> told;
  std::string refused;
};

TEST(ElasticLeader, FormsAGroupAtOnceWhenAllAreThereAndAfterTheLastCallWhenEnoughAre) {
  Leader all(Config(1, 2));
  all.Join(1);
  EXPECT_NE(all.Told<OrderWait>(1), nullptr);
  all.Join(2);
  ASSERT_NE(all.Told<OrderRun>(2), nullptr);
  EXPECT_EQ(all.Told<OrderRun>(2)->first_rank, 2);
  EXPECT_EQ(all.Told<OrderRun>(2)->world_size, 4);
  EXPECT_EQ(all.Told<OrderRun>(2)->master_addr, "10.0.0.1");
  EXPECT_EQ(all.Told<OrderRun>(2)->master_port, 1001);

  Leader some(Config(1, 3));
  some.Join(1);
  some.now = kSecond - 1;
  some.Turn();
  EXPECT_EQ(some.Told<OrderRun>(1), nullptr);
  some.now = kSecond;
  some.Turn();
  EXPECT_NE(some.Told<OrderRun>(1), nullptr);
}

TEST(ElasticLeader, BeginsTheNextEpochOnlyWhenNothingIsLeftOfTheLast) {
  Leader leader(Config(2, 2));
  leader.Join(1);
  leader.Join(2);
  leader.Say(1, 1, RanksState::kRunning);
  leader.Say(2, 1, RanksState::kRunning);
  leader.Say(1, 1, RanksState::kRunning, ElasticFailure{0, 7, 0, false, "failed", "", ""});
  ASSERT_NE(leader.Told<OrderStop>(2), nullptr);
  leader.Say(1, 1, RanksState::kIdle, ElasticFailure{0, 7, 0, false, "failed", "", ""});
  EXPECT_EQ(leader.state.epoch(), 1);
  leader.Say(2, 1, RanksState::kIdle);
  ASSERT_NE(leader.Told<OrderRun>(2), nullptr);
  EXPECT_EQ(leader.Told<OrderRun>(2)->epoch, 2);
  EXPECT_EQ(leader.Told<OrderRun>(2)->restarts, 1);
}

TEST(ElasticLeader, EndsWithTheFirstFailureWhenRestartsAreUsedUp) {
  Leader leader(Config(2, 2));
  leader.Join(1);
  leader.Join(2);
  for (int64_t epoch = 1; epoch <= 2; ++epoch) {
    leader.Say(1, epoch, RanksState::kRunning);
    leader.Say(2, epoch, RanksState::kRunning);
    leader.Say(2, epoch, RanksState::kRunning, ElasticFailure{3, 7, 0, false, "failed", "first", "trace"});
    leader.Say(1, epoch, RanksState::kIdle, ElasticFailure{0, 1, 0, false, "failed", "connection reset", ""});
    leader.Say(2, epoch, RanksState::kIdle, ElasticFailure{3, 7, 0, false, "failed", "first", "trace"});
  }
  ASSERT_NE(leader.Told<OrderEnd>(1), nullptr);
  EXPECT_EQ(leader.Told<OrderEnd>(1)->status, 7);
  EXPECT_EQ(leader.Told<OrderEnd>(1)->message, "rank 3 on 'n2' failed first: exit status 7: first");
  EXPECT_EQ(leader.Told<OrderEnd>(1)->traceback, "trace");
}

TEST(ElasticLeader, WaitsForTheSilenceOfWhoIsGoneAndThenDoesNotCountWhatItDidToOthers) {
  Leader leader(Config(1, 2));
  leader.Join(1);
  leader.Join(2);
  leader.Say(1, 1, RanksState::kRunning);
  leader.Say(2, 1, RanksState::kRunning);
  leader.state.OnClosed(2, leader.now);
  leader.Say(1, 1, RanksState::kRunning, ElasticFailure{0, 1, 0, false, "failed", "connection reset", ""});
  leader.Say(1, 1, RanksState::kIdle, ElasticFailure{0, 1, 0, false, "failed", "connection reset", ""});
  leader.now = ElasticTimes{}.Silence() - 1;
  leader.Beat(1);
  leader.Turn();
  EXPECT_EQ(leader.state.epoch(), 1);
  leader.now += 1;
  leader.Turn();
  ASSERT_NE(leader.Told<OrderRun>(1), nullptr);
  EXPECT_EQ(leader.Told<OrderRun>(1)->restarts, 0);
  EXPECT_EQ(leader.Told<OrderRun>(1)->left, std::vector<std::string>{"n2"});
}

TEST(ElasticLeader, LendsNoMoreThanItHas) {
  Leader leader(Config(1, 1));
  leader.state.OnRight(3 * kSecond);
  leader.now = kSecond;
  leader.Join(1);
  EXPECT_EQ(leader.told[1].right_us, 2 * kSecond);
  leader.now = 4 * kSecond;
  leader.Say(1, 1, RanksState::kRunning);
  EXPECT_EQ(leader.told[1].right_us, 0);
}

TEST(ElasticLeader, RefusesWhoWasStartedDifferently) {
  LeaderConfig config = Config(1, 2);
  config.terms = {{"command", "a"}};
  Leader leader(config);
  leader.Join(1);
  EXPECT_EQ(leader.refused, "agent 'n1' was started differently: it does not tell its command");
  JoinRequest join;
  join.version = "2";
  join.agent = join.host = "n2";
  leader.state.OnJoin(2, join, 0);
  leader.Turn();
  EXPECT_EQ(leader.refused, "agent 'n2' is of version 2, the leader of version 1");
}

TEST(ElasticLeader, RefusesWhoComesToACompleteGroupOnceAllOfItHasBeenHeardSince) {
  LeaderConfig config = Config(2, 2);
  config.agent = "n1";
  Leader leader(config);
  leader.Join(1);
  leader.Join(2);
  leader.Say(1, 1, RanksState::kRunning);
  leader.Say(2, 1, RanksState::kRunning);
  leader.now = kSecond;
  leader.Join(3);
  EXPECT_EQ(leader.refused, "") << "n2 may have died, and n3 may be there in its place";
  leader.now = 2 * kSecond;
  leader.Beat(2);
  leader.Turn();
  EXPECT_TRUE(leader.refused.starts_with("agent 'n3' is one too many: the group has its 2 nodes already"))
      << leader.refused;
  EXPECT_EQ(leader.state.TakeDrops(), std::vector<int>{3});
  EXPECT_EQ(leader.state.Members(), 2u);
  EXPECT_EQ(leader.state.epoch(), 1);
}

TEST(ElasticLeader, KeepsWhoComesInThePlaceOfANodeThatDiedOrAsAReserve) {
  for (const Grow grow : {Grow::kAtCheckpoint, Grow::kNo}) {
    LeaderConfig config = Config(2, 2);
    config.agent = "n1";
    config.grow = grow;
    Leader leader(config);
    leader.Join(1);
    leader.Join(2);
    leader.Say(1, 1, RanksState::kRunning);
    leader.Say(2, 1, RanksState::kRunning);
    leader.now = kSecond;
    if (grow != Grow::kNo) leader.state.OnClosed(2, leader.now);
    leader.Join(3);
    if (grow == Grow::kNo) leader.Beat(2);
    leader.Turn();
    EXPECT_EQ(leader.refused, "");
    EXPECT_NE(leader.Told<OrderWait>(3), nullptr);
  }
}

TEST(ElasticLeader, TellsTheEndOfItsJobToNobodyElse) {
  Leader leader(Config(1, 1));
  leader.Join(1);
  leader.Say(1, 1, RanksState::kRunning);
  leader.Say(1, 1, RanksState::kDone);
  ASSERT_NE(leader.Told<OrderEnd>(1), nullptr);
  JoinRequest join;
  join.version = "1";
  join.agent = "of the next job";
  leader.state.OnJoin(2, join, leader.now);
  EXPECT_EQ(leader.state.TakeDrops(), std::vector<int>{2});
  EXPECT_EQ(leader.state.Members(), 1u);
}

// ---- a member

OrderRun RunOf(int64_t epoch) {
  OrderRun run;
  run.epoch = epoch;
  return run;
}

template <typename T>
bool Does(MemberState* member) {
  bool found = false;
  for (const MemberAction& action : member->TakeActions())
    found = found || std::get_if<T>(&action) != nullptr;
  return found;
}

TEST(ElasticMember, StartsAnEpochOnceAndNoOlderOne) {
  MemberState member({}, kSecond);
  member.OnConnected(100);
  member.OnAnswer({100, 5 * kSecond, 1, false, RunOf(3)}, 200);
  EXPECT_TRUE(Does<StartRanks>(&member));
  member.OnAnswer({100, 5 * kSecond, 1, false, RunOf(3)}, 300);
  EXPECT_FALSE(Does<StartRanks>(&member));
  member.OnRanksEnded(true, 400);
  member.OnAnswer({100, 5 * kSecond, 1, false, RunOf(2)}, 500);
  EXPECT_FALSE(Does<StartRanks>(&member));
}

TEST(ElasticMember, StartsNothingWithoutARightThatLasts) {
  MemberState member({}, kSecond);
  member.OnConnected(100);
  member.OnAnswer({100, 0, 1, false, RunOf(1)}, 200);
  member.OnAnswer({100, 5 * kSecond, 1, false, RunOf(1)}, 100 + 4 * kSecond);  // only the guard is left
  EXPECT_FALSE(Does<StartRanks>(&member));
  MemberState other({}, kSecond);
  other.OnConnected(100);
  other.OnAnswer({5000, 5 * kSecond, 1, false, RunOf(1)}, 6000);  // it never said that
  EXPECT_FALSE(Does<StartRanks>(&other));
}

TEST(ElasticMember, KillsItsRanksAGuardBeforeItsRightEnds) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  EXPECT_TRUE(Does<StartRanks>(&member));
  member.OnClosed();
  member.OnTime(4 * kSecond - 1);
  EXPECT_FALSE(Does<KillRanks>(&member));
  member.OnTime(4 * kSecond);
  EXPECT_TRUE(Does<KillRanks>(&member));
}

TEST(ElasticMember, KillsWhatItHasWhenAnotherLeads) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  (void)member.TakeActions();
  member.OnAnswer({0, 5 * kSecond, 2, false, OrderWait{}}, 1);
  EXPECT_TRUE(Does<KillRanks>(&member));
}

TEST(ElasticMember, NeverStartsAnEpochThatItWasToldToStop) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, OrderStop{4, false, false, ""}}, 0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(4)}, 1);
  EXPECT_FALSE(Does<StartRanks>(&member));
  EXPECT_EQ(member.report().epoch, 4);
}

TEST(ElasticMember, WarnsFirstWhenItIsAskedTo) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  (void)member.TakeActions();
  member.OnAnswer({0, 5 * kSecond, 1, false, OrderStop{1, true, false, ""}}, 10);
  EXPECT_TRUE(Does<WarnRanks>(&member));
  member.OnWarned(true, 20);
  member.OnTime(9 + kSecond);
  EXPECT_FALSE(Does<StopRanks>(&member));
  member.OnTime(10 + kSecond);
  EXPECT_TRUE(Does<StopRanks>(&member));
}

TEST(ElasticMember, StopsRanksThatDoNotHandleTheWarningAtOnce) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  member.OnAnswer({0, 5 * kSecond, 1, false, OrderStop{1, true, false, ""}}, 10);
  EXPECT_TRUE(Does<WarnRanks>(&member));
  member.OnWarned(false, 20);
  EXPECT_EQ(member.NextUs(), 20);
  member.OnTime(20);
  EXPECT_TRUE(Does<StopRanks>(&member));
}

TEST(ElasticMember, AWarningOfTheGroupReachesItsRanksOnceAndStopsNothing) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  LeaderAnswer answer{0, 5 * kSecond, 1, false, RunOf(1)};
  member.OnAnswer(answer, 0);
  (void)member.TakeActions();
  answer.warned = true;
  member.OnAnswer(answer, 10);
  EXPECT_TRUE(Does<WarnRanks>(&member));
  member.OnWarned(false, 11);
  member.OnAnswer(answer, 12);
  member.OnTime(13);
  EXPECT_TRUE(member.TakeActions().empty());
  MemberState first({}, kSecond);
  first.OnConnected(0);
  first.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  EXPECT_FALSE(first.report().warned);
  first.OnWarning(5);
  EXPECT_TRUE(first.report().warned);
}

TEST(ElasticMember, CtrlCStopsItsRanksWithoutAWarning) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  member.OnAnswer({0, 5 * kSecond, 1, false, RunOf(1)}, 0);
  (void)member.TakeActions();
  member.OnLeave(5, true);
  EXPECT_TRUE(member.TakeActions().empty()) << "the leader says when";
  member.OnAnswer({0, 5 * kSecond, 1, false, OrderStop{1, true, false, ""}}, 10);
  EXPECT_TRUE(Does<StopRanks>(&member));
}

TEST(ElasticMember, BeatsOnlyWhenTheLeaderKnowsTheReport) {
  MemberState member({}, kSecond);
  member.OnConnected(0);
  (void)member.TakeMessages();
  member.OnTime(ElasticTimes{}.Beat());
  auto messages = member.TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(std::get_if<MemberReport>(&messages[0]), nullptr);  // not heard: all of it again
  const int64_t sent = std::get<MemberReport>(messages[0]).sent_us;
  member.OnAnswer({sent, 5 * kSecond, 1, false, OrderWait{}}, sent + 1);
  member.OnTime(sent + ElasticTimes{}.Beat());
  messages = member.TakeMessages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(std::get_if<MemberBeat>(&messages[0]), nullptr);
}

}  // namespace
}  // namespace overcap::elastic
