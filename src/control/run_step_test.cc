// SPDX-License-Identifier: Apache-2.0
#include "control/run_step.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

SpawnRequest Running(std::vector<std::string> argv) {
  SpawnRequest request;
  request.argv = std::move(argv);
  request.env = {"PATH=/usr/bin:/bin"};
  return request;
}

TEST(RunStep, SaysHowAProgramFailed) {
  EXPECT_TRUE(RunStep(Running({"true"}), nullptr));
  const auto failed = RunStep(Running({"/bin/sh", "-c", "exit 7"}), nullptr);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "'/bin/sh -c 'exit 7'' failed with status 7");
  EXPECT_EQ(RunStep(Running({"/no/such/program"}), nullptr).error().code, ErrorCode::kNotFound);
}

TEST(RunStep, StopsAProgramThatDoesNotStopByItself) {
  const std::atomic<bool> stop{true};
  const auto stopped = RunStep(Running({"sleep", "1000"}), &stop);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, "'sleep 1000' was stopped");
}

}  // namespace
}  // namespace overcap
