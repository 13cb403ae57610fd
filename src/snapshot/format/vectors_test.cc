// SPDX-License-Identifier: Apache-2.0
// The test vectors of docs/formats/snapshot.md, read from the document itself.
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "base/crc32c.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/chunker.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/format/testing/meta_memory.h"

namespace overcap {
namespace {

std::map<std::string, std::string> ReadVectors() {
  std::ifstream document(OVERCAP_TEST_DATA "/../../docs/formats/snapshot.md");
  std::map<std::string, std::string> vectors;
  std::string line;
  while (std::getline(document, line) && line != "## Test vectors") {
  }
  for (int fences = 0; fences < 2 && std::getline(document, line);) {
    if (line == "```") {
      ++fences;
    } else if (fences == 1) {
      const size_t value = line.find_first_not_of(' ', line.find(' '));
      vectors[line.substr(0, line.find(' '))] = line.substr(value);
    }
  }
  return vectors;
}

std::string Vector(const std::string& name) {
  static const std::map<std::string, std::string> vectors = ReadVectors();
  const auto found = vectors.find(name);
  return found == vectors.end() ? "not in the document: " + name : found->second;
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string SampleMap() {
  return EncodeContentMap(0, {{ContentPart::Kind::kChunk, 6, Sha256Of("hello\n")},
                              {ContentPart::Kind::kHole, 1'048'576, {}},
                              {ContentPart::Kind::kChunk, 6, Sha256Of("world\n")}});
}

TEST(Vectors, ChunksOfAKnownSequence) {
  std::string data(12'000'000, '\0');
  uint64_t x = 1;
  for (char& byte : data) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(x >> 56);
  }
  std::string lengths;
  std::string_view first;
  std::string_view rest = data;
  while (!rest.empty()) {
    const int64_t length = NextChunk(rest, {});
    if (lengths.empty()) first = rest.substr(0, static_cast<size_t>(length));
    lengths += (lengths.empty() ? "" : " ") + std::to_string(length);
    rest.remove_prefix(static_cast<size_t>(length));
  }
  EXPECT_EQ(lengths, Vector("chunks"));
  EXPECT_EQ(Sha256Of(first).Hex(), Vector("first-chunk"));
}

TEST(Vectors, AMap) {
  EXPECT_EQ(Hex(SampleMap()), Vector("map"));
  EXPECT_EQ(Sha256Of(SampleMap()).Hex(), Vector("map-id"));
}

TEST(Vectors, APackAndItsIndex) {
  PackHead head;
  for (size_t i = 0; i < head.salt.size(); ++i) head.salt[i] = static_cast<uint8_t>(i);
  const std::string raw(100, 'a'), first = "hello\nworld\n",
                                   second(
                                       "\x1f"
                                       "a\1\0KPaaaaa",
                                       11);
  const std::vector<PackedBlock> blocks = {
      {BlockCodec::kStored, 12, 12, Crc32c(first), {{Sha256Of("hello\n"), 6}, {Sha256Of("world\n"), 6}}},
      {BlockCodec::kLz4, 11, 100, Crc32c(second), {{Sha256Of(raw), 100}}}};
  const std::string footer = EncodePackFooter(blocks);
  const std::string pack = head.Encode() + first + second + footer + EncodePackTail(footer.size());
  EXPECT_EQ(Hex(pack), Vector("pack"));
  const Digest id = PackId(head.Encode(), footer);
  EXPECT_EQ(id.Hex(), Vector("pack-id"));
  PackIndex index;
  index.packs.push_back(
      {id, ChunkKind::kData, static_cast<int64_t>(pack.size()), static_cast<int64_t>(footer.size()), footer});
  EXPECT_EQ(Sha256Of(EncodePackIndex(index)).Hex(), Vector("index-id"));
  EXPECT_EQ(DecodePackFooter(footer).value(), blocks);
  std::string back;
  ASSERT_TRUE(BlockDecompressor().Decompress(BlockCodec::kLz4, second, 100, &back));
  EXPECT_EQ(back, raw);
}

TEST(Vectors, ATree) {
  MetaMemory memory;
  SnapshotEntry root = FolderEntry(""), a = FolderEntry("a"), b = FileEntry("a/b", "hello\n"),
                empty = FileEntry("a/empty", "");
  SnapshotEntry mapped = FileEntry("a-b"), link = SymlinkEntry("link", "a/b");
  a.mode = 0750;
  a.uid = a.gid = 1000;
  a.mtime_ns = -1;
  link.mtime_ns = b.mtime_ns = 1'763'210'000'123'456'789;
  b.xattrs = {{"user.note", "x"}};
  empty.mode = 0600;
  empty.uid = empty.gid = mapped.uid = mapped.gid = 0;
  empty.mtime_ns = mapped.mtime_ns = 0;
  mapped.size = 1'048'588;
  mapped.content = {FileContent::Kind::kMap, Sha256Of(SampleMap())};
  const auto tree = BuildTree({root, a, b, empty, mapped, link, HardLinkEntry("twin", b)}, &memory);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(Hex(memory.chunks[*tree]), Vector("tree-root"));
  EXPECT_EQ(tree->Hex(), Vector("tree-id"));
}

TEST(Vectors, ALargeTree) {
  MetaMemory memory;
  TreeBuilder builder(memory.Put());
  ASSERT_TRUE(builder.Add(FolderEntry("")));
  SnapshotEntry file = FileEntry("", "hello\n");
  file.uid = file.gid = 0;
  file.mtime_ns = 0;
  for (int i = 0; i < 100'000; ++i) {
    file.path = "f" + std::to_string(1'000'000 + i).substr(1);
    ASSERT_TRUE(builder.Add(file));
  }
  EXPECT_EQ(builder.Finish().value().Hex(), Vector("large-tree-id"));
}

}  // namespace
}  // namespace overcap
