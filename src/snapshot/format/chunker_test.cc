// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/chunker.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <string>
#include <vector>

#include "snapshot/sha256.h"

namespace overcap {
namespace {

// As in docs/formats/snapshot.md, "Test vectors": x = x * 6364136223846793005 + 1442695040888963407, the
// highest byte of each.
std::string SeededBytes(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

std::vector<int64_t> Cuts(std::string_view data, const ChunkSizes& sizes) {
  std::vector<int64_t> lengths;
  while (!data.empty()) {
    lengths.push_back(NextChunk(data.substr(0, static_cast<size_t>(sizes.max)), sizes));
    data.remove_prefix(static_cast<size_t>(lengths.back()));
  }
  return lengths;
}

// The document word for word, byte by byte.
int64_t SlowNextChunk(std::string_view data, const ChunkSizes& sizes) {
  uint64_t gear[256] = {};
  for (int i = 0; i < 256; ++i) {
    const Digest digest = Sha256Of(std::string("overcap gear ") + static_cast<char>(i));
    for (int byte = 0; byte < 8; ++byte) gear[i] |= static_cast<uint64_t>(digest.bytes[byte]) << (8 * byte);
  }
  uint64_t h = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(data.size()); ++i) {
    const int64_t length = i + 1;
    if (i >= sizes.min - 64) h = (h << 1) + gear[static_cast<unsigned char>(data[static_cast<size_t>(i)])];
    const uint64_t mask = length <= sizes.average ? ~uint64_t{0} << 42 : ~uint64_t{0} << 46;
    if ((length >= sizes.min && (h & mask) == 0) || length == sizes.max) return length;
  }
  return static_cast<int64_t>(data.size());
}

TEST(Chunker, CutsWhereTheDocumentSays) {
  const ChunkSizes sizes;
  const std::string data = SeededBytes(1, 12'000'000);
  std::string_view rest = data;
  while (!rest.empty()) {
    const std::string_view window = rest.substr(0, static_cast<size_t>(sizes.max));
    const int64_t length = NextChunk(window, sizes);
    EXPECT_EQ(length, SlowNextChunk(window, sizes));
    rest.remove_prefix(static_cast<size_t>(length));
  }
}

TEST(Chunker, CutsOftenEnoughWithSmallSizesToo) {
  const ChunkSizes sizes{.min = 100, .average = 200, .max = 400'000, .segment = 1'000'000};
  const std::string data = SeededBytes(2, 3'000'000);
  const std::vector<int64_t> lengths = Cuts(data, sizes);
  EXPECT_GT(lengths.size(), 8u);
  size_t at = 0;
  for (const int64_t length : lengths) {
    ASSERT_EQ(length, SlowNextChunk(std::string_view(data).substr(at, 400'000), sizes));
    at += static_cast<size_t>(length);
  }
}

TEST(Chunker, ShortDataIsOneChunkAndUniformDataIsCutAtTheMost) {
  const ChunkSizes sizes;
  EXPECT_EQ(NextChunk("", sizes), 0);
  EXPECT_EQ(NextChunk("a", sizes), 1);
  EXPECT_EQ(NextChunk(SeededBytes(3, 262'144), sizes), 262'144);
  EXPECT_EQ(NextChunk(std::string(5'000'000, '\0'), sizes), sizes.max);
}

TEST(Chunker, SizesBelowTheWindowOfTheHashAreSafe) {
  const std::string data = SeededBytes(4, 1'000'000);
  for (const ChunkSizes& sizes :
       {ChunkSizes{.min = 0, .average = 0, .max = 1}, ChunkSizes{.min = 1, .average = 9, .max = 500'000},
        ChunkSizes{.min = 63, .average = 20, .max = 500'000}}) {
    for (const int64_t length : Cuts(data.substr(0, 500), sizes)) EXPECT_GT(length, 0);
    const std::string_view window = std::string_view(data).substr(0, static_cast<size_t>(sizes.max));
    EXPECT_EQ(NextChunk(window, sizes), SlowNextChunk(window, sizes));
  }
}

TEST(Chunker, AnInsertionMovesOnlyTheChunksAroundIt) {
  const std::string before = SeededBytes(5, 16'000'000);
  std::string after = before;
  after.insert(5'000'000, "a few bytes more");
  const std::vector<int64_t> a = Cuts(before, {}), b = Cuts(after, {});
  size_t same_at_end = 0;
  while (same_at_end < a.size() && a[a.size() - 1 - same_at_end] == b[b.size() - 1 - same_at_end])
    ++same_at_end;
  EXPECT_GE(same_at_end, a.size() / 3);
  EXPECT_EQ(a.front(), b.front());
}

}  // namespace
}  // namespace overcap
