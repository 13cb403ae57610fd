// SPDX-License-Identifier: Apache-2.0
#include "sys/log_bound.h"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

class LogBoundTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/overcap_bound_XXXXXX";
    file_ = Fd(mkostemp(name, O_CLOEXEC));
    ASSERT_TRUE(file_);
    unlink(name);
    if (fallocate(file_.Get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0)
      GTEST_SKIP() << "this file system cannot release a part of a file";
  }
  // Lines of ten bytes with their number.
  void Append(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string number = StrCat(line_++);
      text += std::string(9 - number.size(), '0') + number + "\n";
    }
    ASSERT_EQ(write(file_.Get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int64_t Allocated() const {
    struct stat info {};
    EXPECT_EQ(fstat(file_.Get(), &info), 0);
    return int64_t{info.st_blocks} * 512;
  }
  std::string ReadAll(size_t limit) const {
    std::string text;
    for (int64_t at = 0;;) {
      LogPart part;
      EXPECT_EQ(ReadLogPart(file_.Get(), at, limit, &part), 0);
      if (part.next == at) return text;
      text += part.Marker(at) + part.bytes;
      at = part.next;
    }
  }
  LogBound Bound(int64_t max) const { return LogBound({{file_.Get(), "rank 0"}}, max, 0); }

  Fd file_;
  int line_ = 0;
};

TEST(NextRelease, ALogWithinItsBoundKeepsAll) {
  EXPECT_EQ(NextRelease(10 * kGiB, 10 * kGiB, 0, 10 * kGiB), std::nullopt);
  EXPECT_EQ(NextRelease(10 * kGiB, 10 * kGiB, 0, 0), std::nullopt);
}

TEST(NextRelease, TheHeadAndMostOfTheRestOfTheBoundStay) {
  const auto cut = NextRelease(11 * kGiB, 11 * kGiB, 0, 10 * kGiB);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->begin, 64 * kMiB);
  const int64_t tail = 11 * kGiB - cut->end;
  EXPECT_GE(tail, (10 * kGiB - 64 * kMiB) / 4 * 3);
  EXPECT_LT(tail, (10 * kGiB - 64 * kMiB) / 4 * 3 + kMiB);
}

TEST(NextRelease, OfASmallBoundHalfIsTheHead) {
  EXPECT_EQ(NextRelease(40 * kMiB, 40 * kMiB, 0, 4 * kMiB)->begin, 2 * kMiB);
}

TEST(NextRelease, AHoleIsMadeLongerOnlyWhenWhatIsKeptIsTooMuchAgain) {
  EXPECT_EQ(NextRelease(13 * kGiB, 10 * kGiB, 4 * kGiB, 10 * kGiB), std::nullopt);
  const auto cut = NextRelease(15 * kGiB, 11 * kGiB, 4 * kGiB, 10 * kGiB);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->begin, 4 * kGiB);
}

TEST(NextRelease, BytesThatTakeNoRoomAreNotCounted) {
  EXPECT_EQ(NextRelease(100 * kGiB, kMiB, 0, 10 * kGiB), std::nullopt);
}

TEST_F(LogBoundTest, ALogThatGrowsTakesNoMoreThanItsBoundAndSaysSoOnce) {
  LogBound bound = Bound(4 * kMiB);
  int notes = 0;
  for (int64_t now_us = 0, i = 0; i < 40; ++i, now_us = bound.DueUs()) {
    Append(100'000);
    bound.LookIfDue(now_us);
    if (bound.TakeNote()) ++notes;
    EXPECT_LE(Allocated(), 4 * kMiB + 1'000'000);
  }
  EXPECT_EQ(notes, 1);
}

TEST_F(LogBoundTest, TheNoteNamesTheLogAndTheBound) {
  Append(1'000'000);
  LogBound bound = Bound(4 * kMiB);
  bound.Look(0);
  EXPECT_EQ(
      bound.TakeNote(),
      "the log of rank 0 is larger than logs.max (4.0 MiB): its middle was dropped; the first 2.0 MiB and "
      "the newest 1.5 MiB or more are kept");
}

TEST_F(LogBoundTest, ALogThatDoesNotGrowIsLookedAtRarely) {
  LogBound bound = Bound(4 * kMiB);
  int64_t now_us = 0, looks = 0;
  for (; now_us < 60'000'000; now_us = bound.DueUs(), ++looks) bound.LookIfDue(now_us);
  EXPECT_LT(looks, 45);
}

TEST_F(LogBoundTest, TheFasterALogGrowsTheSoonerItIsLookedAtAgain) {
  LogBound bound = Bound(4 * kMiB);
  Append(1000);
  bound.Look(1'000'000);
  EXPECT_GE(bound.DueUs(), 1'100'000);
  Append(300'000);
  bound.Look(1'100'000);  // 30 MB/s: what is left would be full within 40 ms
  EXPECT_LE(bound.DueUs(), 1'120'000);
  EXPECT_GT(bound.DueUs(), 1'100'000);
}

TEST_F(LogBoundTest, WithoutABoundNothingIsLookedAt) {
  Append(1'000'000);
  LogBound bound = Bound(0);
  EXPECT_EQ(bound.DueUs(), INT64_MAX);
  bound.Look(0);
  EXPECT_EQ(bound.TakeNote(), std::nullopt);
  EXPECT_GE(Allocated(), 10'000'000);
}

TEST_F(LogBoundTest, ReadersGetTheHeadALineAndTheTailWithoutTornLines) {
  Append(4'000'000);
  LogBound bound = Bound(4 * kMiB);
  bound.Look(0);
  for (const size_t limit : {1000, 65'536, 100'000'000}) {
    const std::string text = ReadAll(limit);
    EXPECT_EQ(text.find('\0'), std::string::npos);
    EXPECT_TRUE(text.starts_with("000000000\n000000001\n"));
    EXPECT_TRUE(text.ends_with("\n003999999\n"));
    const size_t marker = text.find("[overcap: ");
    ASSERT_EQ(static_cast<int64_t>(marker), 2 * kMiB);
    const size_t line = text.find('\n', marker) + 1;
    EXPECT_NE(text.substr(marker, line - marker).find("MiB of this log were dropped here (logs.max)]"),
              std::string::npos);
    EXPECT_EQ(text.substr(line).find('\n'), 9u);
    EXPECT_GE(static_cast<int64_t>(text.size() - line), 3 * kMiB / 2 - 10);
    EXPECT_EQ(text.find("[overcap: ", line), std::string::npos);
  }
}

TEST_F(LogBoundTest, AReaderWhoseTextWasReleasedIsGivenTheRestWithALine) {
  Append(4'000'000);
  LogBound bound = Bound(4 * kMiB);
  bound.Look(0);
  LogPart part;
  ASSERT_EQ(ReadLogPart(file_.Get(), 20 * kMiB + 3, 1000, &part), 0);
  EXPECT_GT(part.dropped, 10 * kMiB);
  EXPECT_EQ(part.bytes.find('\n'), 9u);
}

TEST_F(LogBoundTest, NulsThatAProgramHasWrittenAreGivenAsTheyAre) {
  const std::string text = StrCat("a", std::string(10'000, '\0'), "b\n");
  ASSERT_EQ(write(file_.Get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(ReadAll(4096), text);
}

TEST_F(LogBoundTest, AHoleThatNothingFollowsIsTheEnd) {
  Append(100);
  ASSERT_EQ(ftruncate(file_.Get(), 100 * kMiB), 0);
  EXPECT_EQ(ReadAll(65'536).size(), 1000u);
}

TEST_F(LogBoundTest, WhereAFileSystemCannotReleaseItIsSaidOnce) {
  // A seal that forbids holes behaves as such a file system does: the release fails.
  const Fd sealed(memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(sealed);
  const std::string text(8 << 20, 'x');
  ASSERT_EQ(write(sealed.Get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(fcntl(sealed.Get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  LogBound bound({{sealed.Get(), "rank 3"}}, 4 * kMiB, 0);
  bound.Look(0);
  const auto note = bound.TakeNote();
  ASSERT_TRUE(note);
  EXPECT_NE(note->find("the log of rank 3 is larger than logs.max and stays so"), std::string::npos);
  EXPECT_EQ(bound.DueUs(), INT64_MAX);
}

}  // namespace
}  // namespace overcap
