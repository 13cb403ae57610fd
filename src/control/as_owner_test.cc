// SPDX-License-Identifier: Apache-2.0
#include "control/as_owner.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(AsOwner, TheChildHasTheOwnersVariablesAndNoOthers) {
  setenv("ROOTS_SECRET", "x", 1);
  const auto variables = OwnersVariables("ann", "/home/ann", "/bin/bash");
  unsetenv("ROOTS_SECRET");
  EXPECT_EQ(variables,
            (std::vector<std::string>{"HOME=/home/ann", "USER=ann", "LOGNAME=ann", "SHELL=/bin/bash",
                                      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                      "OVERCAP_CONFIG=/dev/null", "XDG_CONFIG_HOME=/dev/null"}));
}

TEST(AsOwner, OddEntriesOfTheUserListAreNotPassedOn) {
  const auto variables = OwnersVariables("ann", "", "nologin");
  EXPECT_EQ(variables[0], "HOME=/");
  EXPECT_EQ(variables[3], "SHELL=/bin/sh");
}

TEST(AsOwner, TheStepRefusesRootAndWordsThatItDoesNotKnow) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"as-owner", "--uid", "0", "--", "logs"},
        {"as-owner", "--uid", "-1", "--", "logs"},
        {"as-owner", "--uid", "4294967295", "--", "logs"},
        {"as-owner", "--", "logs"},
        {"as-owner", "--uid", "7", "--"},
        {"as-owner", "--gid", "7", "--", "logs"}}) {
    const auto refused = RunAsOwnerStep(words);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  }
}

TEST(AsOwner, AUserWhomTheListDoesNotKnowGetsNoChild) {
  const auto refused = RunAsOwner({.user = "no-such-user-here", .words = {"logs"}, .variables = {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_FALSE(RunAsOwner({.user = "root", .words = {"logs"}, .variables = {}}));
}

}  // namespace
}  // namespace overcap
