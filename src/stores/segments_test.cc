// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <unistd.h>

#include "base/text.h"
#include "stores/mem/mem_store.h"
#include "stores/segment_keys.h"
#include "stores/segment_upload.h"
#include "stores/stored_log_reader.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
const char* const kKey = "jobs/u-1/attempt-1/rank-0.log";

class Segments : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/overcap-segments-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/rank-0.log";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& bytes) { std::ofstream(path_, std::ios::app | std::ios::binary) << bytes; }
  SegmentUpload Upload(SegmentUpload::Options options = {}) { return {path_, kKey, options}; }
  std::string ReadAll(StoredLogReader* reader) {
    std::string all;
    for (int empty = 0; empty < 10;) {
      const auto bytes = reader->Read(1000);
      EXPECT_TRUE(bytes);
      empty = bytes->empty() ? empty + 1 : 0;
      all += *bytes;
    }
    return all;
  }
  int64_t Objects() { return static_cast<int64_t>(store_.ListAll("")->size()); }

  std::string folder_, path_;
  MemStore store_;
};

TEST_F(Segments, KeysAreReadBack) {
  EXPECT_EQ(SegmentKey("a/b", 12), "a/b/0000000000000012");
  EXPECT_EQ(SegmentOffset("a/b", "a/b/0000000000000012"), 12);
  for (const char* bad : {"a/b/12", "a/b/00000000000000x2", "a/c/0000000000000012", "a/b", ""})
    EXPECT_EQ(SegmentOffset("a/b", bad), std::nullopt) << bad;
}

TEST_F(Segments, ASlowLogIsPutAgainAndABusyOneInLargePieces) {
  SegmentState state;
  EXPECT_EQ(NextPut(state, 0, 0, false), std::nullopt);
  EXPECT_EQ(NextPut(state, 100, 0, false), (SegmentPut{0, 100}));
  NotePut({0, 100}, 0, &state);
  EXPECT_EQ(NextPut(state, 100, 9 * kSecond, true), std::nullopt);
  EXPECT_EQ(NextPut(state, 150, kSecond / 2, false), std::nullopt);
  EXPECT_EQ(NextPut(state, 150, kSecond / 2, true), (SegmentPut{0, 150}));
  EXPECT_EQ(NextPut(state, 150, kSecond, false), (SegmentPut{0, 150}));
  // More than fits goes into the next one, and at once.
  EXPECT_EQ(NextPut(state, 100 + kGrowBytes, 1, false), (SegmentPut{100, 100 + kGrowBytes}));
  EXPECT_EQ(NextPut(state, 100 << 20, 1, false), (SegmentPut{100, 100 + kMostSegment}));
  // The larger it is, the longer the next put of it waits.
  NotePut({0, 100'000}, 0, &state);
  EXPECT_EQ(NextPut(state, 100'001, kSecond, false), std::nullopt);
  EXPECT_NE(NextPut(state, 100'001, 2 * kSecond, false), std::nullopt);
}

TEST_F(Segments, WhatWasWrittenIsReadOnceAndInOrderWhileItGrowsAndWritersAreKilled) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    const auto before = store_.ListAll("");
    for (const StoredObjectInfo& object : *before) ASSERT_TRUE(store_.Remove(object.key));
    std::filesystem::remove(path_);
    auto upload = std::make_unique<SegmentUpload>(Upload());
    StoredLogReader reader(store_, kKey);
    std::string all, read;
    for (int step = 0; step < 120; ++step) {
      std::string bytes(random() % (step % 10 == 0 ? 300'000 : 5'000), static_cast<char>('a' + step % 26));
      Write(bytes);
      all += bytes;
      if (random() % 20 == 0) upload = std::make_unique<SegmentUpload>(Upload());
      if (random() % 3 != 0) {
        ASSERT_TRUE(upload->Step(&store_, step * kSecond, random() % 4 == 0));
      }
      if (random() % 2 == 0) read += *reader.Read(1 << 20);
    }
    while (*upload->Step(&store_, 0, true)) continue;
    EXPECT_EQ(upload->Unsent(), 0);
    EXPECT_TRUE(*upload->Check(&store_));
    read += ReadAll(&reader);
    EXPECT_EQ(read == all, true) << "seed " << seed << ": " << read.size() << " of " << all.size();
    StoredLogReader again(store_, kKey);
    EXPECT_EQ(ReadAll(&again) == all, true) << "seed " << seed;
  }
}

TEST_F(Segments, ASlowLogMakesFewObjects) {
  auto upload = Upload();
  for (int second = 0; second < 1000; ++second) {
    Write("a line of a slow log, one each second\n");
    ASSERT_TRUE(upload.Step(&store_, second * kSecond, false));
  }
  EXPECT_LE(Objects(), 2);
}

TEST_F(Segments, TheTailIsFoundWithoutTheRest) {
  auto upload = Upload();
  for (int i = 0; i < 100'000; ++i) Write(StrCat("line ", i, "\n"));
  Write("no newline");
  while (*upload.Step(&store_, 0, true)) continue;
  StoredLogReader reader(store_, kKey);
  ASSERT_TRUE(reader.SeekToTail(3, 1 << 20));
  EXPECT_EQ(ReadAll(&reader), "line 99998\nline 99999\nno newline");
  ASSERT_TRUE(reader.SeekToTail(0, 1 << 20));
  EXPECT_EQ(ReadAll(&reader), "");
  ASSERT_TRUE(reader.SeekToTail(1'000'000, 25));
  EXPECT_EQ(ReadAll(&reader).size(), 25u);
  Write("!\n");
  while (*upload.Step(&store_, 0, true)) continue;
  EXPECT_EQ(ReadAll(&reader), "!\n");
}

TEST_F(Segments, WhatIsDroppedIsToldInItsPlace) {
  auto upload = Upload({.free = true});
  Write("first\n");
  ASSERT_TRUE(upload.Step(&store_, 0, true));
  Write(std::string(10'000'000, 'x'));
  const int64_t dropped = upload.DropBeyond(4'000'000);
  EXPECT_EQ(dropped, 8'000'000);
  while (*upload.Step(&store_, 0, true)) continue;
  EXPECT_EQ(std::filesystem::file_size(path_), 10'000'006u);
  StoredLogReader reader(store_, kKey);
  EXPECT_EQ(ReadAll(&reader), StrCat("first\n[overcap: 8000000 bytes of this log were dropped on the node]\n",
                                     std::string(2'000'000, 'x')));
}

TEST_F(Segments, WhatALogHasLostToItsBoundIsNeverSent) {
  const std::string head(2 << 20, 'h'), middle(4 << 20, 'm'), tail(1 << 20, 't');
  Write(head + middle + tail);
  const Fd file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  const auto begin = static_cast<off_t>(head.size()), length = static_cast<off_t>(middle.size());
  if (fallocate(file.Get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, length) != 0)
    GTEST_SKIP() << "this file system cannot release a part of a file";
  auto upload = Upload();
  while (*upload.Step(&store_, 0, true)) continue;
  StoredLogReader reader(store_, kKey);
  EXPECT_EQ(ReadAll(&reader),
            StrCat(head, "[overcap: 4194304 bytes of this log were dropped on the node]\n", tail));
  EXPECT_EQ(upload.Unsent(), 0);
}

TEST_F(Segments, AHoleBetweenTwoPutsEndsTheSegmentBeforeIt) {
  auto upload = Upload();
  Write(std::string(100'000, 'h'));
  while (*upload.Step(&store_, 0, true)) continue;
  Write(std::string(3 << 20, 'm') + "last\n");
  const Fd file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (fallocate(file.Get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65'536, 3 << 20) != 0)
    GTEST_SKIP() << "this file system cannot release a part of a file";
  while (*upload.Step(&store_, 0, true)) continue;
  StoredLogReader reader(store_, kKey);
  const std::string text = ReadAll(&reader);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_TRUE(text.starts_with(std::string(100'000, 'h') + "[overcap: ")) << text.substr(99'990, 100);
  EXPECT_TRUE(text.ends_with("mlast\n"));
}

TEST_F(Segments, WhatSomebodyElseReadsTooIsNeverDropped) {
  auto upload = Upload();
  Write(std::string(1'000'000, 'x'));
  EXPECT_EQ(upload.DropBeyond(1000), 0);
  EXPECT_EQ(upload.Unsent(), 1'000'000);
}

TEST_F(Segments, OfAReportOnlyWholeLinesAreTaken) {
  auto upload = Upload({.lines = true});
  Write(std::string("{\"a\":1}\n{\"b\"", 12) + std::string(100, '\0'));
  ASSERT_TRUE(*upload.Step(&store_, 0, true));
  EXPECT_EQ(*store_.Get(SegmentKey(kKey, 0)), "{\"a\":1}\n");
  EXPECT_FALSE(*upload.Step(&store_, 0, true));
  EXPECT_EQ(upload.Unsent(), 0);
}

TEST_F(Segments, AStoreThatFailsLosesNothing) {
  auto disk = std::make_shared<MemStore>();
  FaultStore faulty(disk);
  StoreFault fault;
  fault.ops = {StoreOp::kPut, StoreOp::kList};
  fault.error = Error{ErrorCode::kUnavailable, "away", ""};
  faulty.Add(fault);
  auto upload = Upload();
  Write("one\n");
  EXPECT_FALSE(upload.Step(&faulty, 0, true));
  Write("two\n");
  EXPECT_FALSE(upload.Step(&faulty, kSecond, true));
  EXPECT_EQ(upload.Unsent(), 8);
  ASSERT_TRUE(upload.Step(disk.get(), 2 * kSecond, true));
  StoredLogReader reader(*disk, kKey);
  EXPECT_EQ(ReadAll(&reader), "one\ntwo\n");
}

TEST_F(Segments, APutThatComesLateIsMended) {
  auto upload = Upload();
  Write("one\n");
  ASSERT_TRUE(upload.Step(&store_, 0, true));
  Write("two\n");
  ASSERT_TRUE(upload.Step(&store_, 1, true));
  ASSERT_TRUE(store_.Put(SegmentKey(kKey, 0), "one\n"));  // the first one, again
  EXPECT_FALSE(*upload.Check(&store_));
  EXPECT_TRUE(*upload.Check(&store_));
  StoredLogReader reader(store_, kKey);
  EXPECT_EQ(ReadAll(&reader), "one\ntwo\n");
}

}  // namespace
}  // namespace overcap
