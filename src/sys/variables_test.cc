// SPDX-License-Identifier: Apache-2.0
#include "sys/variables.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace overcap {
namespace {

using Entries = std::vector<std::string>;

TEST(VariablesTest, AVariableIsFoundByItsWholeName) {
  const Variables variables(Entries{"SLURM_JOB_ID=1234", "SLURM_JOB=9", "EMPTY="});
  EXPECT_EQ(variables.Get("SLURM_JOB_ID"), "1234");
  EXPECT_EQ(variables.Get("SLURM_JOB"), "9");
  EXPECT_EQ(variables.Get("SLURM"), "");
  EXPECT_FALSE(variables.Has("SLURM"));
  EXPECT_TRUE(variables.Has("EMPTY"));
  EXPECT_EQ(variables.Get("EMPTY"), "");
}

TEST(VariablesTest, AValueMayHoldAnEqualsSign) {
  EXPECT_EQ(Variables(Entries{"FLAGS=--x=1"}).Get("FLAGS"), "--x=1");
}

TEST(VariablesTest, OfANameThatStandsThereTwiceTheFirstCounts) {
  const Variables variables(Entries{"A=1", "A=2"});
  EXPECT_EQ(variables.Get("A"), "1");
}

TEST(VariablesTest, ASetValueTakesThePlaceOfTheOldOne) {
  Variables variables(Entries{"A=1", "B=2", "A=3"});
  variables.Set("A", "new");
  variables.Set("C", "");
  EXPECT_EQ(variables.entries(), (Entries{"A=new", "B=2", "A=3", "C="}));
}

TEST(VariablesTest, ARemovedNameIsGoneHoweverOftenItStoodThere) {
  Variables variables(Entries{"A=1", "AB=2", "A=3"});
  variables.Remove("A");
  EXPECT_FALSE(variables.Has("A"));
  EXPECT_EQ(variables.entries(), Entries{"AB=2"});
}

TEST(VariablesTest, AnEntryWithoutEqualsSignIsKeptAndFoundByNoName) {
  Variables variables(Entries{"odd", "A=1"});
  EXPECT_FALSE(variables.Has("odd"));
  variables.Remove("odd");
  EXPECT_EQ(variables.entries(), (Entries{"odd", "A=1"}));
}

TEST(VariablesTest, ThisProcessHasTheVariablesOfItsEnvironment) {
  setenv("OVERCAP_VARIABLES_TEST", "here", 1);
  EXPECT_EQ(Variables::OfThisProcess().Get("OVERCAP_VARIABLES_TEST"), "here");
  unsetenv("OVERCAP_VARIABLES_TEST");
  EXPECT_FALSE(Variables::OfThisProcess().Has("OVERCAP_VARIABLES_TEST"));
}

}  // namespace
}  // namespace overcap
