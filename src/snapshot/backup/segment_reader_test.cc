// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/segment_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "snapshot/repository/testing/sample_repository.h"
#include "snapshot/testing/sample_folder.h"
#include "sys/fd.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr ChunkSizes kSizes{.min = 512, .average = 2048, .max = 8192, .segment = 1 << 20};

// What the format says: the whole run is at hand.
std::vector<int64_t> CutsOf(std::string_view data) {
  std::vector<int64_t> cuts;
  while (!data.empty()) {
    cuts.push_back(NextChunk(data.substr(0, static_cast<size_t>(kSizes.max)), kSizes));
    data.remove_prefix(static_cast<size_t>(cuts.back()));
  }
  return cuts;
}

RC_GTEST_PROP(SegmentReader, CutsWhereTheFormatSaysHoweverMuchItReadsAtOnce, ()) {
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const auto size = *rc::gen::inRange<size_t>(0, 200'000);
  const bool text = *rc::gen::arbitrary<bool>();
  const std::string content = text ? TextBytes(seed, size) : NoiseBytes(seed, size);
  TempFolder temp;
  PutFile(temp / "f", "before" + content + "after");
  const Fd fd(open((temp / "f").c_str(), O_RDONLY));
  HashSink sink;
  SegmentReader reader(kSizes, &sink);
  std::vector<ContentPart> parts;
  int64_t told = 0;
  const auto outcome =
      reader.Read(fd.Get(), {6, static_cast<int64_t>(size), false}, &parts, [&](int64_t bytes) {
        told += bytes;
        return true;
      });
  RC_ASSERT(outcome && outcome->error_number == 0 && !outcome->cut_short);
  RC_ASSERT(told == static_cast<int64_t>(size));
  size_t at = 0;
  std::vector<int64_t> cuts;
  for (const ContentPart& part : parts) {
    RC_ASSERT(part.id == Sha256Of(std::string_view(content).substr(at, static_cast<size_t>(part.length))));
    at += static_cast<size_t>(part.length);
    cuts.push_back(part.length);
  }
  RC_ASSERT(cuts == CutsOf(content));
}

TEST(SegmentReader, SaysWhenTheFileEndsBeforeTheRun) {
  TempFolder temp;
  PutFile(temp / "f", std::string(1000, 'x'));
  const Fd fd(open((temp / "f").c_str(), O_RDONLY));
  HashSink sink;
  SegmentReader reader(kSizes, &sink);
  std::vector<ContentPart> parts;
  const auto outcome = reader.Read(fd.Get(), {0, 5000, false}, &parts, [](int64_t) { return true; });
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->cut_short);
  int64_t length = 0;
  for (const ContentPart& part : parts) length += part.length;
  EXPECT_EQ(length, 1000);
}

TEST(SegmentReader, SaysWhatKeptItFromReading) {
  TempFolder temp;
  const Fd fd(open(temp.Path().c_str(), O_RDONLY | O_DIRECTORY));
  HashSink sink;
  SegmentReader reader(kSizes, &sink);
  std::vector<ContentPart> parts;
  const auto outcome = reader.Read(fd.Get(), {0, 5000, false}, &parts, [](int64_t) { return true; });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->error_number, EISDIR);
  EXPECT_TRUE(parts.empty());
}

TEST(FileRuns, AreCutFromTheBeginOfEachRunOfData) {
  const std::vector<FileRun> runs = {{0, 250, false}, {250, 5000, true}, {5250, 100, false}};
  const std::vector<FileRun> expected = {
      {0, 100, false}, {100, 100, false}, {200, 50, false}, {250, 5000, true}, {5250, 100, false}};
  EXPECT_EQ(CutRuns(runs, 100), expected);
  EXPECT_TRUE(CutRuns({}, 100).empty());
}

}  // namespace
}  // namespace overcap
