// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_error.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr char kRecorded[] =
    R"({"message": {"message": "ValueError: bad batch 17", "extraInfo": {"py_callstack": "Traceback\nlines"}}})";

TEST(RankErrorTest, IsReadFromWhatRecordWrote) {
  EXPECT_EQ(ParseErrorFile(kRecorded).message, "ValueError: bad batch 17");
  EXPECT_EQ(ParseErrorFile(kRecorded).traceback, "Traceback\nlines");
  EXPECT_EQ(ParseErrorFile(R"({"message": "first\nlast"})").message, "last");
  for (const char* text : {"", "{", "[]", R"({"message": 5})", R"({"other": "x"})"}) {
    EXPECT_EQ(ParseErrorFile(text).message, "") << text;
  }
  EXPECT_EQ(ReadErrorFile("/not/there").message, "");
}

TEST(RankErrorTest, IsHandedOnWithTheExitStatus) {
  char name[] = "/tmp/overcap-error-XXXXXX";
  const std::string folder = mkdtemp(name);
  PosixFiles files;
  const std::string own = folder + "/error-1.json", users = folder + "/users.json";
  EXPECT_TRUE(HandErrorOn(own, 3, users));  // the rank left none
  EXPECT_FALSE(files.Exists(users));
  ASSERT_TRUE(files.WriteAtomic(own, kRecorded, false));
  EXPECT_TRUE(HandErrorOn(own, 3, ""));
  EXPECT_TRUE(HandErrorOn(own, 3, own));
  EXPECT_EQ(*files.Read(own), kRecorded);
  EXPECT_TRUE(HandErrorOn(own, 3, users));
  EXPECT_NE(files.Read(users)->find(R"("errorCode":3)"), std::string::npos);
  EXPECT_EQ(ReadErrorFile(users).message, "ValueError: bad batch 17");
  EXPECT_FALSE(HandErrorOn(own, 3, "/not/there/users.json"));
  (void)files.RemoveTree(folder);
}

}  // namespace
}  // namespace overcap
