// SPDX-License-Identifier: Apache-2.0
#include "control/log_file.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
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

// Numbered lines of ten bytes, of which the middle was released.
class LogWithAHole : public LogFileTest {
 protected:
  static constexpr int64_t kBegin = 1 << 20, kEnd = 3 << 20;
  void SetUp() override {
    LogFileTest::SetUp();
    std::string text;
    for (int i = 0; i < 400'000; ++i) {
      const std::string number = std::to_string(i);
      text += std::string(9 - number.size(), '0') + number + "\n";
    }
    Append(text);
    const Fd file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (fallocate(file.Get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kBegin, kEnd - kBegin) != 0)
      GTEST_SKIP() << "this file system cannot release a part of a file";
  }
  static std::string All(LogReader* reader) {
    std::string text;
    for (std::string some = *reader->Read(65'536); !some.empty(); some = *reader->Read(65'536)) text += some;
    return text;
  }
};

TEST_F(LogWithAHole, IsReadWithALineInThePlaceOfTheHole) {
  LogReader reader(path_);
  const std::string text = All(&reader);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_NE(text.find("\n000104856\n000104\n[overcap: 2.0 MiB of this log were dropped here (logs.max)]\n"
                      "000314573\n"),
            std::string::npos);
  EXPECT_TRUE(text.ends_with("\n000399999\n"));
}

TEST_F(LogWithAHole, ATailBehindTheHoleKnowsNothingOfIt) {
  EXPECT_EQ(Tail(2), "000399998\n000399999\n");
}

TEST_F(LogWithAHole, ATailThatIsLongerBeginsBeforeIt) {
  LogReader reader(path_);
  ASSERT_TRUE(reader.SeekToTail(100'000, INT64_MAX));
  const std::string text = All(&reader);
  // The torn lines on both sides count as one each.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100'001);
  EXPECT_TRUE(text.starts_with("000090")) << text.substr(0, 20);
  EXPECT_NE(text.find("[overcap: 2.0 MiB"), std::string::npos);
}

TEST_F(LogWithAHole, AFollowerInsideTheHoleGoesOnBehindIt) {
  LogReader reader(path_);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(reader.Read(65'536)->size(), 65'536u);
  EXPECT_EQ(reader.offset(), kBegin);
  EXPECT_TRUE(
      reader.Read(100)->starts_with("\n[overcap: 2.0 MiB of this log were dropped here (logs.max)]\n"));
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
