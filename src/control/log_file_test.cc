// SPDX-License-Identifier: Apache-2.0
#include "control/log_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

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

// Played by tests/stores/test_nfs.py on two hosts that share the folder OVERCAP_TEST_SHARED_FOLDER: a job
// writes on one, somebody follows its log on the other.
class LogOfAnotherHost : public testing::Test {
 protected:
  static constexpr int kLines = 40;
  static void Pause() { usleep(100'000); }

  const std::string folder_ = StrCat(getenv("OVERCAP_TEST_SHARED_FOLDER"), "/attempt-1");
  const std::string log_ = folder_ + "/rank-0.log", waits_ = folder_ + "-waits", ended_ = folder_ + "/result";
  PosixFiles files_;
};

TEST_F(LogOfAnotherHost, DISABLED_ItIsWritten) {
  while (!files_.Exists(waits_)) Pause();
  ASSERT_TRUE(files_.MakeFolders(folder_));
  for (int i = 0; i < kLines; ++i, Pause()) {
    std::ofstream(log_, std::ios::app) << "line " << i << "\n";
  }
  ASSERT_TRUE(files_.WriteAtomic(ended_, "0", false));
}

TEST_F(LogOfAnotherHost, DISABLED_ItIsReadAtOnceAndToItsEnd) {
  LogReader reader(log_);
  EXPECT_EQ(*reader.Read(100), "");  // from now on its name is known to be missing
  ASSERT_TRUE(files_.MakeFolders(folder_.substr(0, folder_.rfind('/'))));
  ASSERT_TRUE(files_.WriteAtomic(waits_, "", false));
  std::string text;
  size_t parts = 0;
  for (bool ended = false; !ended; Pause()) {
    ended = files_.Read(ended_).has_value();
    for (std::string some = *reader.Read(100); !some.empty(); some = *reader.Read(100), ++parts) text += some;
  }
  EXPECT_GT(parts, size_t{kLines / 4});
  EXPECT_TRUE(text.ends_with(StrCat("line ", kLines - 1, "\n"))) << text;
}

}  // namespace
}  // namespace overcap
