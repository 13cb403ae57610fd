// SPDX-License-Identifier: Apache-2.0
#include "control/launch.h"

#include <gtest/gtest.h>

#include "control/elastic/elastic_options.h"

namespace overcap {
namespace {

TEST(LaunchOptions, RanksHaveTorchrunsTimeToSaveInEveryMode) {
  EXPECT_EQ(LaunchOptions().grace_us, 30'000'000);
  EXPECT_EQ(ElasticOptions().grace_us, LaunchOptions().grace_us);
}

}  // namespace
}  // namespace overcap
