// SPDX-License-Identifier: Apache-2.0
// Thousands of runs of whole groups through lost and late messages, cuts, crashes, frozen processes and
// skewed clocks: never are ranks of two epochs alive at once, and when the world heals, a group runs.
#include <gtest/gtest.h>

#include "base/testing/one_thread.h"
#include "elastic/testing/sim_world.h"

namespace overcap::elastic::sim {
namespace {

constexpr uint64_t kSeeds = RoundsInOneThread(2000);
constexpr uint64_t kSeedsForBroken = 400;

TEST(ElasticSimulation, NeverHasTwoGroupsAtOnceWhateverIsCutAndGoesOnWhenItHeals) {
  int64_t epochs = 0, terms = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimConfig config;
    config.seed = seed;
    config.min_nodes = 1 + static_cast<int>(seed % 3);
    SimWorld world(config);
    ASSERT_EQ(world.Run(), "") << "seed " << seed;
    ASSERT_GE(world.RanksOfLastEpoch(), config.min_nodes) << "no group came back; seed " << seed;
    epochs += world.epochs();
    terms += world.terms();
  }
  EXPECT_GT(epochs, static_cast<int64_t>(5 * kSeeds)) << "the runs are too quiet to show anything";
  EXPECT_GT(terms, static_cast<int64_t>(2 * kSeeds)) << "leaders never change";
}

// Whether some run of a world without one of its safeguards has two groups at once.
bool Fails(Broken broken) {
  for (uint64_t seed = 1; seed <= kSeedsForBroken; ++seed) {
    SimConfig config;
    config.seed = seed;
    config.broken = broken;
    if (!SimWorld(config).Run().empty()) return true;
  }
  return false;
}

TEST(ElasticSimulation, FindsTwoGroupsWhenAnAgentDoesNotKillItsRanksAtTheEndOfItsRight) {
  EXPECT_TRUE(Fails({.never_kills = true}));
}

TEST(ElasticSimulation, FindsTwoGroupsWhenALeaderLendsMoreThanItHas) {
  EXPECT_TRUE(Fails({.lends_too_long = true}));
}

TEST(ElasticSimulation, FindsTwoGroupsWhenClocksDriftMoreThanIsAllowedFor) {
  EXPECT_TRUE(Fails({.wild_clocks = true}));
}

TEST(ElasticSimulation, FindsTwoGroupsWhenKillingTakesLongerThanTheGuard) {
  EXPECT_TRUE(Fails({.kills_slowly = true}));
}

TEST(ElasticSimulation, FindsTwoGroupsWhenABrokenConnectionCountsAsDeadRanks) {
  EXPECT_TRUE(Fails({.believes_silence = true}));
}

}  // namespace
}  // namespace overcap::elastic::sim
