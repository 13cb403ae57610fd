// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_decide.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <vector>

namespace overcap {
namespace {

constexpr int64_t kS = 1'000'000;

AutoRules Every30() {
  AutoRules rules;
  rules.every_us = 1800 * kS;
  return rules;
}

// Facts of a service that was saved at 0 and looks at `now` seconds.
AutoFacts At(int64_t now) {
  AutoFacts facts;
  facts.now = now * kS;
  facts.saved = facts.tried = 0;
  return facts;
}
AutoFacts Ending(int64_t now, int64_t end, int64_t saved) {
  AutoFacts facts = At(now);
  facts.end = end * kS;
  facts.saved = saved * kS;
  return facts;
}
AutoFacts Failed(int64_t now, int failures, int64_t tried) {
  AutoFacts facts = At(now);
  facts.failures = failures;
  facts.tried = tried * kS;
  return facts;
}

struct Row {
  const char* what;
  AutoRules rules;
  AutoFacts facts;
  AutoAct act;
  AutoReason reason;
  int64_t at;  // seconds; of kWait
};

TEST(AutoDecide, EachSituationHasItsAnswer) {
  AutoFacts nothing;
  nothing.now = 5 * kS;
  AutoFacts asked = At(100);
  asked.asked = 99 * kS;
  AutoFacts busy = At(1800);
  busy.tried = busy.took = 1700 * kS;
  AutoFacts long_last = Ending(700, 1000, 700);
  long_last.took = 60 * kS;
  AutoFacts answered = asked;
  answered.saved = 99 * kS;
  AutoFacts near_failed = Failed(100, 5, 98);
  near_failed.end = 200 * kS;
  AutoFacts asked_failed = Failed(100, 5, 98);
  asked_failed.asked = 90 * kS;
  const auto wait = AutoAct::kWait;
  const auto back_up = AutoAct::kBackUp;
  const std::vector<Row> rows = {
      {"the first at once", Every30(), nothing, back_up, AutoReason::kFirst, 0},
      {"half an hour is not over", Every30(), At(1799), wait, AutoReason::kTime, 1800},
      {"half an hour is over", Every30(), At(1800), back_up, AutoReason::kTime, 0},
      {"five minutes when nothing else is said", {}, At(299), wait, AutoReason::kTime, 300},
      {"a long backup delays nothing", Every30(), busy, back_up, AutoReason::kTime, 0},
      {"a warning", Every30(), asked, back_up, AutoReason::kAsked, 0},
      {"a warning that was obeyed", Every30(), answered, wait, AutoReason::kTime, 1899},
      {"the end is far", Every30(), Ending(60, 1000, 0), wait, AutoReason::kEndNear, 700},
      {"the end is near", Every30(), Ending(700, 1000, 0), back_up, AutoReason::kEndNear, 0},
      {"once is not enough", Every30(), Ending(710, 1000, 700), wait, AutoReason::kEndNear, 970},
      {"a long backup begins earlier", Every30(), long_last, wait, AutoReason::kEndNear, 865},
      {"the last one", Every30(), Ending(970, 1000, 700), back_up, AutoReason::kEndNear, 0},
      {"after the last one", Every30(), Ending(980, 1000, 970), wait, AutoReason::kTime, 2770},
      {"the end was put off", Every30(), Ending(1001, 1000, 970), wait, AutoReason::kTime, 2770},
      {"a failure waits", Every30(), Failed(1805, 1, 1800), wait, AutoReason::kRetry, 1810},
      {"and tries again", Every30(), Failed(1810, 1, 1800), back_up, AutoReason::kRetry, 0},
      {"longer each time", Every30(), Failed(1850, 4, 1800), wait, AutoReason::kRetry, 1880},
      {"ten minutes at most", Every30(), Failed(1900, 40, 1800), wait, AutoReason::kRetry, 2400},
      {"near the end it hurries", Every30(), near_failed, wait, AutoReason::kRetry, 103},
      {"after a warning, too", Every30(), asked_failed, wait, AutoReason::kRetry, 103},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const AutoDecision decision = DecideAuto(row.rules, row.facts);
    EXPECT_EQ(decision.act, row.act);
    EXPECT_EQ(AutoReasonText(decision.reason), AutoReasonText(row.reason));
    EXPECT_EQ(decision.at, row.act == AutoAct::kWait ? row.at * kS : row.facts.now);
  }
}

TEST(AutoDecide, ToldToEndItSavesOnceMoreAndEnds) {
  AutoFacts facts = At(100);
  facts.stopped = 100 * kS;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kBackUp);
  facts.saved = facts.tried = 100 * kS;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kEnd);
  EXPECT_FALSE(DecideAuto(Every30(), facts).unsaved);
}

TEST(AutoDecide, ToldToEndWithoutAStoreItGivesUpInTime) {
  AutoFacts facts = At(100);
  facts.stopped = 100 * kS;
  facts.failures = 3;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kBackUp);
  facts.tried = 101 * kS;
  facts.now = 101 * kS;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kWait);
  facts.now = 102 * kS;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kBackUp);
  facts.now = 120 * kS;
  EXPECT_EQ(DecideAuto(Every30(), facts).act, AutoAct::kEnd);
  EXPECT_TRUE(DecideAuto(Every30(), facts).unsaved);
}

// The service with a clock of its own: what happens over hours.
struct Simulation {
  AutoRules rules;
  AutoFacts facts;
  int64_t backup_takes = 2 * kS;
  std::vector<int64_t> begun;  // seconds

  // Until `until` seconds; the store is there unless `broken`.
  void Run(int64_t until, bool broken = false) {
    for (; facts.now < until * kS; facts.now += kS) {
      const AutoDecision decision = DecideAuto(rules, facts);
      if (decision.act != AutoAct::kBackUp) continue;
      const int64_t began = facts.now;
      begun.push_back(began / kS);
      facts.now += backup_takes;
      facts.tried = facts.now;
      if (broken) {
        ++facts.failures;
        continue;
      }
      facts.failures = 0;
      facts.took = backup_takes;
      facts.saved = began;
    }
  }
};

TEST(AutoSimulation, TheTimerRunsFromBeginToBegin) {
  Simulation simulation;
  simulation.Run(1201);
  EXPECT_EQ(simulation.begun, (std::vector<int64_t>{0, 300, 600, 900, 1200}));
}

TEST(AutoSimulation, ABackupThatTakesLongerThanThePeriodIsFollowedByTheNext) {
  Simulation simulation;
  simulation.backup_takes = 400 * kS;
  simulation.Run(1000);
  EXPECT_EQ(simulation.begun, (std::vector<int64_t>{0, 401, 802}));
}

TEST(AutoSimulation, AStoreThatIsGoneIsTriedLessAndLessAndUsedAgainWhenItIsBack) {
  Simulation simulation;
  simulation.rules = Every30();
  simulation.Run(1);
  simulation.Run(4 * 3600, true);
  const size_t tries = simulation.begun.size();
  EXPECT_GE(tries, 15u);
  EXPECT_LE(tries, 40u);
  simulation.Run(4 * 3600 + 700);
  EXPECT_EQ(simulation.begun.size(), tries + 1);
  EXPECT_EQ(simulation.facts.failures, 0);
}

RC_GTEST_PROP(AutoSimulation, BeforeTheEndOfAnAllocationTheWorkIsSaved, ()) {
  Simulation simulation;
  simulation.rules.every_us = *rc::gen::inRange<int64_t>(300, 40'000) * kS;
  simulation.backup_takes = *rc::gen::inRange<int64_t>(1, 60) * kS;
  const int64_t end = *rc::gen::inRange<int64_t>(60, 20'000);
  simulation.facts.end = end * kS;
  simulation.Run(end);
  // The last one has begun as late as is safe, and has ended in time.
  RC_ASSERT(!simulation.begun.empty());
  RC_ASSERT(simulation.begun.back() >= end - 300);
  RC_ASSERT(simulation.begun.back() + simulation.backup_takes / kS <= end + 30);
}

RC_GTEST_PROP(AutoDecide, AWaitIsAlwaysForLater, ()) {
  AutoFacts facts;
  const auto time = [] { return *rc::gen::inRange<int64_t>(0, 4000) * kS; };
  const auto maybe = [&] {
    return *rc::gen::arbitrary<bool>() ? std::optional<int64_t>(time()) : std::nullopt;
  };
  facts.now = time();
  facts.saved = maybe();
  facts.tried = maybe();
  facts.failures = *rc::gen::inRange(0, 50);
  facts.end = maybe();
  facts.asked = maybe();
  facts.stopped = maybe();
  AutoRules rules;
  rules.every_us = *rc::gen::inRange<int64_t>(1, 4000) * kS;
  const AutoDecision decision = DecideAuto(rules, facts);
  RC_ASSERT(decision.act != AutoAct::kWait || decision.at > facts.now);
}

}  // namespace
}  // namespace overcap
