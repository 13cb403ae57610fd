// SPDX-License-Identifier: Apache-2.0
#include "launch/torch_run.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

std::optional<TorchRun> Sent(const TorchRun& run) {
  Variables variables;
  variables.Set(kRunVariable, EncodeRun(run));
  auto taken = TakeRun(&variables);
  EXPECT_FALSE(variables.Has(kRunVariable));
  return taken;
}

TEST(TorchRunTest, ArrivesAsItWasSent) {
  const TorchRun run{.id = "overcap-1", .errors = "/", .restarts = 2, .max_restarts = 3, .nodes = 4};
  EXPECT_EQ(Sent(run), run);
  EXPECT_EQ(Sent({.id = "a"}), TorchRun{.id = "a"});
}

TEST(TorchRunTest, AFolderThatThisHostDoesNotSeeIsDropped) {
  EXPECT_EQ(Sent({.id = "a", .errors = "/not here/with spaces"}), TorchRun{.id = "a"});
}

TEST(TorchRunTest, WhatMakesNoSenseIsNone) {
  for (const char* text : {"", "1", "1 2 3", "1 2 3 ", "x 2 3 id ", "-1 2 3 id "}) {
    Variables variables({std::string(kRunVariable) + "=" + text});
    EXPECT_FALSE(TakeRun(&variables)) << text;
  }
}

}  // namespace
}  // namespace overcap
