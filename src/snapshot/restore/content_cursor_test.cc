// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_cursor.h"

#include <gtest/gtest.h>
#include <map>

#include "snapshot/restore/resume_marker.h"

namespace overcap {
namespace {

class ContentCursorTest : public testing::Test {
 protected:
  ContentCursorTest() : get_([this](const Digest& id) -> Result<std::string> { return maps_.at(id); }) {}

  static ContentPart Chunk(int64_t length) { return {ContentPart::Kind::kChunk, length, Sha256Of("c")}; }
  static ContentPart Hole(int64_t length) { return {ContentPart::Kind::kHole, length, {}}; }
  ContentPart Map(int level, const std::vector<ContentPart>& parts) {
    const std::string bytes = EncodeContentMap(level, parts);
    int64_t length = 0;
    for (const ContentPart& part : parts) length += part.length;
    maps_[Sha256Of(bytes)] = bytes;
    return {ContentPart::Kind::kMap, length, Sha256Of(bytes)};
  }
  // Offsets of the parts, then the end or -1 for damage.
  std::vector<int64_t> Walk(const ContentPart& top, int64_t size) {
    WantedEntry file;
    file.size = size;
    file.content = FileContent::Kind::kMap;
    file.id = top.id;
    ContentCursor cursor(file, get_);
    std::vector<int64_t> offsets;
    while (true) {
      const Result<std::optional<PlacedPart>> part = cursor.Next();
      if (!part) return offsets.push_back(-1), offsets;
      if (!*part) return offsets.push_back(size), offsets;
      offsets.push_back((*part)->offset);
    }
  }

  std::map<Digest, std::string> maps_;
  GetMeta get_;
};

using Offsets = std::vector<int64_t>;

TEST_F(ContentCursorTest, GoesThroughAllLevels) {
  const ContentPart low = Map(0, {Chunk(10), Hole(5000), Chunk(3)});
  const ContentPart high = Map(1, {low, low});
  EXPECT_EQ(Walk(low, 5013), (Offsets{0, 10, 5010, 5013}));
  EXPECT_EQ(Walk(high, 10026), (Offsets{0, 10, 5010, 5013, 5023, 10023, 10026}));
}

TEST_F(ContentCursorTest, RefusesLengthsThatDoNotAddUp) {
  const ContentPart low = Map(0, {Chunk(10), Hole(5000)});
  EXPECT_EQ(Walk(low, 5011).back(), -1);
  EXPECT_EQ(Walk(low, 5000).back(), -1);
  ContentPart longer = low;
  longer.length += 1;
  EXPECT_EQ(Walk(Map(1, {longer}), 5011).back(), -1);
}

TEST_F(ContentCursorTest, RefusesMapsThatDoNotGoDown) {
  const ContentPart low = Map(0, {Chunk(10)});
  const ContentPart one = Map(1, {low});
  EXPECT_EQ(Walk(Map(1, {one}), 10).back(), -1);
}

TEST(ResumeMarkerTest, ComesBackAsItWasWritten) {
  const ResumeMarker marker{"boot", Sha256Of("tree"), "/a/b\nc", 12345};
  const std::optional<ResumeMarker> read = ResumeMarker::Decode(marker.Encode());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->SameWork(marker));
  EXPECT_EQ(read->began_ns, 12345);
  for (size_t size = 0; size < marker.Encode().size() - 6; ++size) {
    EXPECT_FALSE(ResumeMarker::Decode(marker.Encode().substr(0, size))) << size;
  }
}

TEST(ResumeMarkerTest, OtherWorkIsNotContinued) {
  const ResumeMarker marker{"boot", Sha256Of("tree"), "/a", 1};
  ResumeMarker other = marker;
  other.boot_id = "";
  EXPECT_FALSE(other.SameWork(other));
  other = marker;
  other.tree = Sha256Of("other");
  EXPECT_FALSE(other.SameWork(marker));
  other = marker;
  other.folder = "/b";
  EXPECT_FALSE(other.SameWork(marker));
}

}  // namespace
}  // namespace overcap
