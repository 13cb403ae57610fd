// SPDX-License-Identifier: Apache-2.0
#include "control/auto_requests.h"

#include <gtest/gtest.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(AutoRequests, WhatIsWrittenIsRead) {
  const AutoRequest request{"n1", "/scratch/\xff", {"/opt/overcap", "workspace", "auto"}};
  EXPECT_EQ(AutoRequestFromJson(AutoRequestToJson(request), "f").value(), request);
  EXPECT_FALSE(AutoRequestFromJson("{}", "f"));
}

TEST(AutoRequests, OneOfAnOlderVersionWithOnChangeIsReadAsEveryFiveMinutes) {
  const AutoRequest old{
      "n1", "/a", {"overcap", "workspace", "auto", "w", "--settle", "1s", "--margin", "2m", "--on-change"}};
  const AutoRequest read{
      "n1", "/a", {"overcap", "workspace", "auto", "w", "--margin", "2m", "--every", "5m"}};
  EXPECT_EQ(AutoRequestFromJson(AutoRequestToJson(old), "f").value(), read);
}

TEST(AutoRequests, AHolderTakesThoseForItsHostOnce) {
  const TempFolder temp;
  PosixFiles files;
  const AutoRequest mine{"n1", "/a", {"x"}}, other{"n2", "/b", {"y"}};
  ASSERT_TRUE(files.WriteAtomic(temp / "1.json", AutoRequestToJson(mine), false));
  ASSERT_TRUE(files.WriteAtomic(temp / "2.json", AutoRequestToJson(other), false));
  ASSERT_TRUE(files.WriteAtomic(temp / "3.json", "no request", false));
  EXPECT_EQ(TakeAutoRequests(temp.Path(), "n1"), std::vector<AutoRequest>{mine});
  EXPECT_EQ(TakeAutoRequests(temp.Path(), "n1"), std::vector<AutoRequest>{});
  EXPECT_EQ(files.List(temp.Path()).value(), std::vector<std::string>{"2.json"});
}

TEST(AutoRequests, ARequestThatNobodyTakesIsTakenBack) {
  const TempFolder temp;
  EXPECT_EQ(AskHolder(temp / "dev.json", {"n1", temp.Path(), {"x"}}, 1000).value(), 0);
  EXPECT_EQ(PosixFiles().List(temp / "dev.auto").value(), std::vector<std::string>{});
}

}  // namespace
}  // namespace overcap
