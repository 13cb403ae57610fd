// SPDX-License-Identifier: Apache-2.0
#include "sys/limits.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace overcap {
namespace {

TEST(Limits, TextAndBack) {
  const std::vector<NamedLimit> limits = {{"nofile", 1024, 4096}, {"nproc", -1, -1}};
  EXPECT_EQ(FormatLimits(limits), "nofile=1024:4096,nproc=-1:-1");
  EXPECT_EQ(*ParseLimits("nofile=1024:4096,nproc=-1:-1"), limits);
  EXPECT_TRUE(ParseLimits("")->empty());
}

TEST(Limits, WhatIsNoLimitIsRefused) {
  for (const char* text : {"x", "nofile=", "nofile=1", "nofile=1:", "nofile=:1", "nofile=1:x", "nofile=-2:1",
                           ",", "nofile:1=2"}) {
    EXPECT_FALSE(ParseLimits(text)) << text;
  }
}

TEST(Limits, ThoseOfThisProcessAreAsTheKernelHasThem) {
  const auto limits = LimitsOfProcess(getpid(), getuid());
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->size(), 16u);
  EXPECT_TRUE(std::ranges::is_sorted(*limits, {}, &NamedLimit::name));
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const auto found = std::ranges::find(*limits, "nofile", &NamedLimit::name);
  ASSERT_NE(found, limits->end());
  EXPECT_EQ(found->soft, static_cast<int64_t>(files.rlim_cur));
  EXPECT_EQ(found->hard, static_cast<int64_t>(files.rlim_max));
}

TEST(Limits, AProcessOfAnotherUserSaysNothing) {
  EXPECT_EQ(LimitsOfProcess(getpid(), getuid() + 1).error().code, ErrorCode::kDenied);
  EXPECT_EQ(LimitsOfProcess(1 << 30, getuid()).error().code, ErrorCode::kNotFound);
}

TEST(Limits, SettingThoseThatItHasChangesNothing) {
  const auto before = LimitsOfProcess(getpid(), getuid());
  ASSERT_TRUE(before);
  EXPECT_TRUE(SetOwnLimits(*before));
  EXPECT_TRUE(SetOwnLimits({{"unheard-of", 1, 1}}));
  EXPECT_EQ(*LimitsOfProcess(getpid(), getuid()), *before);
}

}  // namespace
}  // namespace overcap
