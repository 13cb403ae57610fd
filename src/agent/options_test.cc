// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(AgentOptions, ReadsTheWholeCommandLine) {
  const auto options = ParseAgentOptions({"--job",     "/r/jobs/a", "--store=/r/store",
                                          "--attempt", "2",         "--slot",
                                          "3",         "--gpus",    "0,2",
                                          "--cpus",    "0-2,7",     "--retry-tasks",
                                          "17,18",     "--grace",   "5",
                                          "--time",    "60",        "--memory",
                                          "4096",      "--cgroups", "no"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(
      *options,
      (AgentOptions{"/r/jobs/a", "/r/store", 2, 3, {0, 2}, {0, 1, 2, 7}, {17, 18}, 5, 60, 4096, false}));
}

TEST(AgentOptions, TakesEmptyListsAsNone) {
  const auto options = ParseAgentOptions({"--job", "/j", "--store", "/s", "--gpus", "", "--cpus="});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options->gpus.empty() && options->cpus.empty());
}

TEST(AgentOptions, TakesTheLimitsThatASpecMayHave) {
  const auto options = ParseAgentOptions(
      {"--job", "/j", "--store", "/s", "--time", "3162240000", "--memory-bytes", "123456789012345"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->time_seconds, 3'162'240'000);
  EXPECT_EQ(options->memory_bytes, 123'456'789'012'345);
}

TEST(AgentOptions, NamesTheFlagThatIsWrong) {
  EXPECT_EQ(ParseAgentOptions({"--job", "/j", "--time", "-1"}).error().message,
            "agent: --time: '-1' is no number of seconds");
  EXPECT_EQ(ParseAgentOptions({"--job", "/j", "--gpus", "x"}).error().message,
            "agent: --gpus: 'x' is not a number from 0 on");
  EXPECT_EQ(ParseAgentOptions({"--job", "j"}).error().message, "agent: --job: 'j' is no absolute path");
  EXPECT_EQ(ParseAgentOptions({"--job"}).error().message, "agent: '--job' needs a value");
  EXPECT_EQ(ParseAgentOptions({"--jobs", "/j"}).error().message, "agent: unknown argument '--jobs'");
  EXPECT_EQ(ParseAgentOptions({"--job", "/j"}).error().message, "agent: '--store' is missing");
  EXPECT_EQ(ParseAgentOptions({"--cgroups", "x"}).error().message, "agent: --cgroups: 'x' is not yes or no");
  EXPECT_EQ(ParseIndexList("3-1").error().message, "'1' is not a number from 3 on");
}

}  // namespace
}  // namespace overcap
