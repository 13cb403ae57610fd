// SPDX-License-Identifier: Apache-2.0
#include "control/run_step.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "control/stop_signals.h"

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

TEST(RunStep, AProgramThatACtrlCHasKilledStopsUsAlsoWhenWeAreNotToldOfIt) {
  const StopSignals signals;
  const auto stopped = RunStep(Running({"/bin/sh", "-c", "kill -INT $$"}), signals.flag());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(signals.signal(), SIGINT);
  EXPECT_NE(stopped.error().message.find("was stopped"), std::string::npos) << stopped.error().message;
  raise(SIGINT);  // the true one comes late: it is not the second
  EXPECT_EQ(signals.signal(), SIGINT);
}

TEST(RunStep, AProgramThatFailedByItselfStopsNobody) {
  const StopSignals signals;
  const auto failed = RunStep(Running({"false"}), signals.flag());
  ASSERT_FALSE(failed);
  EXPECT_EQ(signals.signal(), 0);
  EXPECT_EQ(failed.error().message, "'false' failed with status 1");
}

}  // namespace
}  // namespace overcap
