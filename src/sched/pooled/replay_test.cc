// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/replay.h"

#include <gtest/gtest.h>
#include <random>

#include "model/policy/policy_text.h"
#include "sched/pooled/replay_report.h"
#include "sched/pooled/rules_of.h"
#include "sched/pooled/testing/invariants.h"

namespace overcap::pooled {
namespace {

Policy ThreeLabs() {
  const auto policy = ParsePolicy(
      "nodes:\n  a[1-4]: {gpus: a40:8, cpus: 64}\n  t[1-2]: {gpus: titan_x:4, cpus: 32}\n"
      "labs:\n  vision: 20 ann bob\n  nlp: {gpus: 12, members: [carol], per_user: {gpus: 8}}\n  art: 8 "
      "dana\n",
      "policy.yaml");
  EXPECT_TRUE(policy) << policy.error().message;
  return *policy;
}

// A busy cluster of those labs, from a seed.
Trace Busy(uint64_t seed, int jobs) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  const int sizes[] = {1, 1, 1, 2, 2, 4, 8, 16};
  const char* labs[] = {"vision", "nlp", "art"};
  const char* ways[] = {"", "short", "debug", "short,user-overcap", "overcap", "short,overcap"};
  std::string text = "submit,run,gpus,lab,user,partition,type,limit\n";
  uint64_t now = 0;
  for (int i = 0; i < jobs; ++i) {
    now += below(400);
    const uint64_t run = 30 + below(9000), lab = below(3);
    text += std::to_string(now) + "," + std::to_string(run) + "," + std::to_string(sizes[below(8)]) + "," +
            labs[lab] + "," + labs[lab] + std::to_string(below(3)) + ",\"" + ways[below(6)] + "\"," +
            (below(4) == 0 ? "a40" : "") + "," + std::to_string(below(2) == 0 ? 0 : run + below(3000)) + "\n";
  }
  return *ReadCsvTrace(text, {});
}

TEST(Replay, WhatMustHoldHoldsAtEveryStep) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Invariants invariants;
    ReplayOptions options;
    options.watch = [&](const PooledScheduler& scheduler, const std::vector<Action>& actions, int64_t now_s) {
      return invariants.Look(scheduler, actions, now_s);
    };
    const Trace trace = Busy(seed, 250);
    const auto replayed = Replay(ThreeLabs(), trace, options);
    ASSERT_TRUE(replayed) << "seed " << seed << ": " << replayed.error().message;
    EXPECT_EQ(replayed->never_started, 0);
    EXPECT_GT(replayed->starts, 100);
  }
}

TEST(Replay, LostWorkIsWhatRanSinceTheLastCheckpoint) {
  // 40 GPUs are lent to art; vision comes and takes some back.
  const auto trace = ReadCsvTrace(
      "submit,run,gpus,lab,partition,limit\n0,10000,32,art,overcap,20000\n4000,100,8,vision,short,200\n", {});
  ASSERT_TRUE(trace);
  const auto replayed = Replay(ThreeLabs(), *trace, {});
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->preemptions, 1);
  EXPECT_EQ(replayed->jobs[1].first_start_s, 4000 + kDefaultGraceSeconds);
  EXPECT_EQ(replayed->jobs[0].lost_gpu_s, 32 * (4000 + 120 - 3600));  // saved at 3600
  const ReplayReport report = ReportOf(*replayed, *trace);
  EXPECT_EQ(report.all.preemptions, 1);
  EXPECT_EQ(report.labs[0].wait_mean_s, 120);
}

TEST(Replay, AScaledPoolHasItsPartOfGpusAndCaps) {
  const Rules rules = RulesOf(ThreeLabs(), 0.4);
  int gpus = 0, caps = 0;
  for (const NodeRule& node : rules.nodes) gpus += node.gpus;
  for (const LabRule& lab : rules.labs) caps += lab.gpu_cap;
  EXPECT_EQ(gpus, 16);
  EXPECT_EQ(caps, 16);
}

}  // namespace
}  // namespace overcap::pooled
