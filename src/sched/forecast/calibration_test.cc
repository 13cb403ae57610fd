// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/testing/calibration.h"

#include <gtest/gtest.h>
#include <random>

#include "base/text.h"
#include "model/policy/policy_text.h"

namespace overcap::forecast {
namespace {

// A busy cluster: users whose jobs use a part of their limit that is typical for them.
Trace Busy(uint64_t seed, int jobs) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return random() % limit; };
  const uint64_t sizes[] = {1, 1, 2, 2, 4, 8}, limits[] = {3600, 7200, 14400};
  std::string text = "submit,run,gpus,lab,user,limit\n";
  uint64_t now = 0;
  for (int i = 0; i < jobs; ++i) {
    now += below(500);
    const uint64_t user = below(6), limit = limits[below(3)];
    const uint64_t run = 1 + limit * (5 + 15 * (user % 3) + below(40)) / 100;
    text += StrCat(now, ",", run, ",", sizes[below(6)], ",", user < 3 ? "vision" : "nlp", ",u", user, ",",
                   limit, "\n");
  }
  return *ReadCsvTrace(text, {});
}

// In the order in which they were submitted, so that later ones change little.
TEST(Calibration, PromisesHoldAboutAsOftenAsTheySayAndLimitsAloneSayLess) {
  const auto policy = ParsePolicy(
      "nodes:\n  a[1-2]: {gpus: a40:8, cpus: 64}\nlabs:\n  vision: 8 u0 u1 u2\n  nlp: 8 u3 u4 u5\n"
      "weights: {lab_share: 0, user_share: 0, size: 0}\n",
      "policy.yaml");
  ASSERT_TRUE(policy) << policy.error().message;
  pooled::ReplayOptions options;
  options.partitions = "long";
  const Trace trace = Busy(3, 500);
  const auto learned = Calibrate(*policy, trace, options, 6, true, OneThread());
  const auto limits = Calibrate(*policy, trace, options, 6, false, OneThread());
  ASSERT_TRUE(learned && limits) << learned.error().message;
  EXPECT_GT(learned->judged, 50);
  EXPECT_GT(learned->p50(), 0.35) << "of " << learned->judged;
  EXPECT_LT(learned->p50(), 0.7);
  EXPECT_GT(learned->p90(), 0.75);
  EXPECT_GT(limits->p50(), 0.85) << "the limits are the worst case";
  EXPECT_LT(learned->error_s, limits->error_s) << "what was learned is nearer to what came";
}

}  // namespace
}  // namespace overcap::forecast
