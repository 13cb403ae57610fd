// SPDX-License-Identifier: Apache-2.0
#include "control/log_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

namespace overcap {
namespace {

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_log_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/rank-0.log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  std::string Tail(int64_t lines, int64_t max_bytes = 1 << 20) { return TailText(path_, lines, max_bytes); }

  std::string folder_, path_;
};

TEST_F(LogFileTest, TailGivesTheLastLines) {
  Append("a\nb\nc\n");
  EXPECT_EQ(Tail(2), "b\nc\n");
  EXPECT_EQ(Tail(3), "a\nb\nc\n");
  EXPECT_EQ(Tail(100), "a\nb\nc\n");
  EXPECT_EQ(Tail(0), "");
}

TEST_F(LogFileTest, ALastLineWithoutNewlineCounts) {
  Append("a\nb\nc");
  EXPECT_EQ(Tail(1), "c");
  EXPECT_EQ(Tail(2), "b\nc");
}

TEST_F(LogFileTest, TailReadsAcrossBlocks) {
  for (int i = 0; i < 50'000; ++i) Append(i % 1000 == 0 ? std::to_string(i) + "\n" : "x\n");
  const std::string tail = Tail(40'000);
  EXPECT_EQ(std::count(tail.begin(), tail.end(), '\n'), 40'000);
  EXPECT_EQ(tail.substr(0, 6), "10000\n");
}

TEST_F(LogFileTest, AnEndlessLineIsCutAtTheLimit) {
  Append(std::string(300'000, 'x'));
  EXPECT_EQ(Tail(100, 1000), std::string(1000, 'x'));
}

TEST_F(LogFileTest, AMissingLogIsEmpty) {
  EXPECT_EQ(Tail(10), "");
}

TEST_F(LogFileTest, AReaderGoesOnWhereItStopped) {
  LogReader reader(path_);
  EXPECT_EQ(*reader.Read(100), "");
  Append("one");
  EXPECT_EQ(*reader.Read(100), "one");
  EXPECT_EQ(*reader.Read(100), "");
  Append("two");
  EXPECT_EQ(*reader.Read(2), "tw");
  EXPECT_EQ(*reader.Read(2), "o");
}

TEST_F(LogFileTest, NulBytesAreKept) {
  Append(std::string("a\0b\n", 4));
  EXPECT_EQ(Tail(1), std::string("a\0b\n", 4));
}

}  // namespace
}  // namespace overcap
