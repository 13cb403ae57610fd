// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_type.h"

#include <gtest/gtest.h>

#include "model/job_state.h"

namespace overcap {
namespace {

TEST(GpuTypeTest, ExpressionsSelectTypes) {
  const struct {
    const char *expression, *type;
    bool matches;
  } cases[] = {
      {"", "a40", true},
      {"  ", "", true},
      {"a40", "a40", true},
      {"A40", "a40", true},
      {"a40", "a4000", false},
      {"a4", "a40", false},
      {"a40|rtx_6000", "rtx_6000", true},
      {"a40,rtx-6000", "RTX 6000", true},
      {"RTX 2080 Ti | a40", "rtx_2080_ti", true},
      {"!titan_x", "titan_x", false},
      {"!titan_x", "titan_xp", true},
      {"!!a40", "a40", true},
      {"(a40|a100)&!mig", "a100_mig", false},
      {"(a40|a100)&!mig", "a100", true},
      {"a100", "a100_sxm4_80gb", true},
      {"a40|a100&!a100", "a40", true},
      {"(a40|a100)&!a40", "a40", false},
      {"!(a40|a100)", "h200", true},
      {"( ( h200 ) )", "h200", true},
      {"a40", "", false},
  };
  for (const auto& c : cases) {
    const auto result = GpuTypeMatches(c.expression, c.type);
    ASSERT_TRUE(result) << c.expression;
    EXPECT_EQ(*result, c.matches) << c.expression << " on " << c.type;
  }
}

TEST(GpuTypeTest, BadExpressionsNameTheColumn) {
  const struct {
    const char* expression;
    int column;
  } cases[] = {{"|a40", 1},   {"a40|", 5}, {"a40||b", 5}, {"(a40", 5},  {"a40)", 4}, {"!", 2},
               {"a40 & ", 7}, {"()", 2},   {"a40$", 4},   {"a\xff", 2}, {"&", 1}};
  for (const auto& c : cases) {
    const auto result = CheckGpuTypeExpression(c.expression);
    ASSERT_FALSE(result) << c.expression;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    EXPECT_NE(result.error().message.find("column " + std::to_string(c.column) + ":"), std::string::npos)
        << result.error().message;
  }
  EXPECT_FALSE(CheckGpuTypeExpression(std::string(100000, '(')));
  EXPECT_FALSE(CheckGpuTypeExpression(std::string(100000, '!')));
}

TEST(GpuTypeTest, NamesOfCardsAreMadeShort) {
  EXPECT_EQ(NormalGpuType("NVIDIA A40"), "a40");
  EXPECT_EQ(NormalGpuType("NVIDIA H200"), "h200");
  EXPECT_EQ(NormalGpuType("GeForce RTX 2080 Ti"), "rtx_2080_ti");
  EXPECT_EQ(NormalGpuType("NVIDIA GeForce RTX 2080 Ti"), "rtx_2080_ti");
  EXPECT_EQ(NormalGpuType("Quadro RTX 6000"), "rtx_6000");
  EXPECT_EQ(NormalGpuType("Tesla V100-SXM2-16GB"), "v100_sxm2_16gb");
  EXPECT_EQ(NormalGpuType("TITAN X (Pascal)"), "titan_x_pascal");
  EXPECT_EQ(NormalGpuType("AMD Instinct MI250X"), "mi250x");
  EXPECT_EQ(NormalGpuType("Intel(R) Data Center GPU Max 1550"), "max_1550");
}

TEST(JobStateTest, NamesComeBack) {
  for (int i = 0; i <= static_cast<int>(JobState::kUnknown); ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(JobStateFromName(JobStateName(state)), state);
  }
  EXPECT_EQ(JobStateFromName("COMPLETING"), std::nullopt);
}

TEST(JobStateTest, FinalStatesAreThoseAfterWhichNothingHappens) {
  EXPECT_TRUE(IsFinal(JobState::kSucceeded) && IsFinal(JobState::kFailed) && IsFinal(JobState::kCancelled) &&
              IsFinal(JobState::kLost));
  EXPECT_FALSE(IsFinal(JobState::kHeld) || IsFinal(JobState::kQueued) || IsFinal(JobState::kRunning) ||
               IsFinal(JobState::kPreempted) || IsFinal(JobState::kUnknown));
}

}  // namespace
}  // namespace overcap
