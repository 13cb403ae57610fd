// SPDX-License-Identifier: Apache-2.0
#include "control/expand_folder.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

// The path, or the message of the refusal.
std::string Expand(const std::string& folder) {
  const auto path =
      ExpandFolder(folder, Variables({"HOME=/home/ann", "USER=ann", "SCRATCH=/scratch/ann/", "E=", "R=x"}));
  return path ? *path : path.error().message;
}

TEST(ExpandFolder, HomeAndVariablesStandForTheirValues) {
  EXPECT_EQ(Expand("/plain"), "/plain");
  EXPECT_EQ(Expand("/plain//"), "/plain");
  EXPECT_EQ(Expand("/"), "/");
  EXPECT_EQ(Expand("~"), "/home/ann");
  EXPECT_EQ(Expand("~/overcap"), "/home/ann/overcap");
  EXPECT_EQ(Expand("$SCRATCH"), "/scratch/ann");
  EXPECT_EQ(Expand("/data/$USER/x"), "/data/ann/x");
  EXPECT_EQ(Expand("/data/${USER}s"), "/data/anns");
}

TEST(ExpandFolder, WhatIsNotSetOrNotAbsoluteIsRefused) {
  EXPECT_EQ(Expand("/data/$USERS/x"), "folder '/data/$USERS/x': the variable USERS is not set");
  EXPECT_EQ(Expand("$E/x"), "folder '$E/x': the variable E is not set");
  EXPECT_EQ(Expand("/a/$"), "folder '/a/$' has a '$' without a name");
  EXPECT_EQ(Expand("/a/${USER"), "folder '/a/${USER' has a '$' without a name");
  EXPECT_EQ(Expand("$R/x"), "folder '$R/x' is 'x/x', which is not absolute");
  EXPECT_EQ(Expand("~bob/x"), "folder '~bob/x' is '~bob/x', which is not absolute");
}

}  // namespace
}  // namespace overcap
