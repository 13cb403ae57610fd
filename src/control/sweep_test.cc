// SPDX-License-Identifier: Apache-2.0
#include "control/sweep.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

std::string Describe(std::string_view text) {
  const auto axis = ParseSweepAxis(text);
  return axis ? StrCat(axis->name, ": ", Join(axis->values, "|")) : axis.error().message;
}

TEST(Sweep, ValuesStandBetweenCommas) {
  EXPECT_EQ(Describe("lr=1e-4,1e-3"), "lr: 1e-4|1e-3");
  EXPECT_EQ(Describe("one=1"), "one: 1");
  EXPECT_EQ(Describe("opt=--a=1,--b=2"), "opt: --a=1|--b=2");
  EXPECT_EQ(Describe("x=,a"), "x: |a");
  EXPECT_EQ(Describe("x=a b,c"), "x: a b|c");
}

TEST(Sweep, ABackslashKeepsACommaInItsValue) {
  EXPECT_EQ(Describe(R"(betas=0.9\,0.99,0.8\,0.9)"), "betas: 0.9,0.99|0.8,0.9");
  EXPECT_EQ(Describe(R"(p=a\\,b\n)"), R"(p: a\|b\n)");
}

TEST(Sweep, WhatIsNoAxisIsRefused) {
  EXPECT_EQ(Describe("lr"), "sweep 'lr' does not begin with a variable's name and '='");
  EXPECT_EQ(Describe("=1"), "sweep '=1' does not begin with a variable's name and '='");
  EXPECT_EQ(Describe("1x=1"), "sweep '1x=1' does not begin with a variable's name and '='");
  EXPECT_EQ(Describe("a b=1"), "sweep 'a b=1' does not begin with a variable's name and '='");
  EXPECT_EQ(Describe("lr="), "sweep 'lr' has no values");
  EXPECT_EQ(Describe("RANK=1,2"), "sweep 'RANK': jobs do not get that variable from outside");
  EXPECT_EQ(Describe("SLURM_JOB_ID=1"), "sweep 'SLURM_JOB_ID': jobs do not get that variable from outside");
}

TEST(Sweep, SeveralAxesMakeAllCombinations) {
  const auto sweep = ParseSweep({"lr=1,2", "gamma=a,b,c"});
  ASSERT_TRUE(sweep);
  const ArraySpec array = SweepArray(*sweep, 4);
  EXPECT_EQ(FormatArraySpec(array), "0-5%4");
  EXPECT_EQ(SweepValues(*sweep, 0), (std::vector<std::string>{"1", "a"}));
  EXPECT_EQ(SweepValues(*sweep, 4), (std::vector<std::string>{"2", "b"}));
}

TEST(Sweep, OneValueMakesOneTask) {
  const auto sweep = ParseSweep({"lr=1"});
  ASSERT_TRUE(sweep);
  EXPECT_EQ(SweepArray(*sweep, 0).Count(), 1);
}

TEST(Sweep, ANameMayStandOnceAndCombinationsAreBounded) {
  EXPECT_EQ(ParseSweep({"a=1", "a=2"}).error().message, "sweep 'a' stands there twice");
  const std::string thousand = "=" + std::string(1000, ',');
  EXPECT_EQ(ParseSweep({"a" + thousand, "b" + thousand, "c" + thousand}).error().message,
            "the sweep has more than 1000000 combinations");
}

}  // namespace
}  // namespace overcap
