// SPDX-License-Identifier: Apache-2.0
#include "model/policy/lab_choice.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Policy TwoLabs() {
  Policy policy;
  policy.labs = {{.name = "vision", .members = {"ann", "bob"}, .admins = {"ann"}},
                 {.name = "nlp", .members = {"ann", "cy"}, .admins = {"cy"}}};
  policy.default_labs = {{"ann", "nlp"}};
  policy.admins = {"ops"};
  return policy;
}

TEST(LabChoice, WithoutAWordItIsTheDefaultLab) {
  EXPECT_EQ(*ChooseLab(TwoLabs(), "ann", ""), "nlp");
  EXPECT_EQ(*ChooseLab(TwoLabs(), "bob", ""), "vision");
}

TEST(LabChoice, AnotherLabOfTheUserMayBeNamed) {
  EXPECT_EQ(*ChooseLab(TwoLabs(), "ann", "vision"), "vision");
}

TEST(LabChoice, ALabOfOthersIsDeniedAndThoseThereAreAreNamed) {
  const auto lab = ChooseLab(TwoLabs(), "bob", "nlp");
  ASSERT_FALSE(lab);
  EXPECT_EQ(lab.error().code, ErrorCode::kDenied);
  EXPECT_EQ(lab.error().message, "user 'bob' is not in lab 'nlp'");
  EXPECT_EQ(lab.error().hint, "--account vision");
}

TEST(LabChoice, WhoIsInNoLabMaySubmitNothing) {
  const auto lab = ChooseLab(TwoLabs(), "eve", "");
  ASSERT_FALSE(lab);
  EXPECT_EQ(lab.error().code, ErrorCode::kDenied);
}

TEST(LabChoice, AdminsAreThoseOfTheLabAlone) {
  EXPECT_TRUE(IsLabAdmin(TwoLabs(), "ann", "vision"));
  EXPECT_FALSE(IsLabAdmin(TwoLabs(), "ann", "nlp"));
  EXPECT_FALSE(IsLabAdmin(TwoLabs(), "ann", ""));
  EXPECT_FALSE(IsLabAdmin(TwoLabs(), "ops", "vision"));
  EXPECT_TRUE(IsClusterAdmin(TwoLabs(), "ops"));
  EXPECT_FALSE(IsClusterAdmin(TwoLabs(), "ann"));
}

}  // namespace
}  // namespace overcap
