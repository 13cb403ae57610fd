// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/pack_format.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/format/bytes.h"

namespace overcap {
namespace {

constexpr std::string_view kHeadMagic = "ocpack2\n";
constexpr std::string_view kTailMagic = "ocpend2\n";
constexpr std::string_view kIndexMagic = "ocindx2\n";
constexpr size_t kHeadZeros = 22;
constexpr size_t kSealTag = 16;         // what encryption adds to a block or a footer
constexpr size_t kLeastChunk = 32 + 1;  // bytes of a footer that a chunk takes
constexpr size_t kLeastBlock = 8 + kLeastChunk;
constexpr size_t kLeastIndexed = 32 + 4 + 1 + kLeastBlock;

tl::unexpected<Error> Damaged(std::string_view what, std::string_view why) {
  return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged: ", why));
}

bool IsKind(char byte) {
  return byte == static_cast<char>(ChunkKind::kData) || byte == static_cast<char>(ChunkKind::kMeta);
}

bool IsCodec(char byte) {
  return byte == static_cast<char>(BlockCodec::kStored) || byte == static_cast<char>(BlockCodec::kLz4) ||
         byte == static_cast<char>(BlockCodec::kZstd);
}

// A block is as large as its raw bytes when it is stored, smaller otherwise, but for the tag of encryption.
bool SizesFit(const PackedBlock& block) {
  if (block.stored_size == 0 || block.raw_size == 0) return false;
  if (block.codec != BlockCodec::kStored) return block.stored_size < block.raw_size + kSealTag;
  return block.stored_size == block.raw_size || block.stored_size == block.raw_size + kSealTag;
}

bool ReadChunks(ByteReader* reader, PackedBlock* block) {
  const uint64_t count = reader->Varint();
  if (count == 0 || count > reader->left() / kLeastChunk) return false;
  block->chunks.resize(count);
  uint64_t sum = 0;
  for (PackedChunk& chunk : block->chunks) {
    chunk.id = reader->Id();
    chunk.size = static_cast<uint32_t>(reader->VarintUpTo(kChunkMost));
    if (chunk.size == 0) return false;
    sum += chunk.size;
  }
  return reader->ok() && sum == block->raw_size;
}

uint32_t ReadCheck(ByteReader* reader) {
  uint32_t check = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    check |= uint32_t{static_cast<unsigned char>(reader->Byte())} << shift;
  }
  return check;
}

bool ReadBlock(ByteReader* reader, PackedBlock* block) {
  const char codec = reader->Byte();
  if (!IsCodec(codec)) return false;
  block->codec = static_cast<BlockCodec>(codec);
  block->stored_size = static_cast<uint32_t>(reader->VarintUpTo(kBlockMost + kSealTag));
  block->raw_size = static_cast<uint32_t>(reader->VarintUpTo(kBlockMost));
  block->check = ReadCheck(reader);
  return reader->ok() && SizesFit(*block) && ReadChunks(reader, block);
}

bool ReadIndexed(ByteReader* reader, IndexedPack* pack) {
  pack->id = reader->Id();
  const char kind = reader->Byte();
  pack->kind = static_cast<ChunkKind>(kind);
  pack->size = static_cast<int64_t>(reader->VarintUpTo(INT64_MAX));
  pack->stored_footer_size = static_cast<int64_t>(reader->VarintUpTo(UINT32_MAX));
  const std::string_view footer = reader->Bytes(reader->left());
  if (!reader->ok() || !IsKind(kind) || footer.empty()) return false;
  const auto stored = static_cast<size_t>(pack->stored_footer_size);
  if (stored != footer.size() && stored != footer.size() + kSealTag) return false;
  if (static_cast<uint64_t>(pack->size) <= kPackHeadSize + stored + kPackTailSize) return false;
  pack->footer = footer;
  return true;
}

}  // namespace

std::string PackHead::Encode() const {
  std::string bytes(kHeadMagic);
  bytes.push_back(static_cast<char>(kind));
  bytes.push_back(encrypted ? 1 : 0);
  bytes.append(kHeadZeros, '\0');
  bytes.append(reinterpret_cast<const char*>(salt.data()), salt.size());
  return bytes;
}

Result<PackHead> PackHead::Decode(std::string_view bytes) {
  if (bytes.size() != kPackHeadSize || !bytes.starts_with(kHeadMagic)) {
    return Damaged("the head of the pack", "it does not begin like a pack");
  }
  ByteReader reader(bytes.substr(kHeadMagic.size()));
  PackHead head;
  const char kind = reader.Byte();
  const char encrypted = reader.Byte();
  head.kind = static_cast<ChunkKind>(kind);
  head.encrypted = encrypted == 1;
  reader.Raw(kHeadZeros);
  head.salt = reader.Id().bytes;
  const bool known = IsKind(kind) && (encrypted == 0 || encrypted == 1);
  // Encoded again it says whether the zeros are zero.
  if (!known || head.Encode() != bytes) {
    return Damaged("the head of the pack", "it says what no pack can be");
  }
  return head;
}

std::string EncodePackFooter(const std::vector<PackedBlock>& blocks) {
  size_t size = kVarintMost;
  for (const PackedBlock& block : blocks) size += 20 + block.chunks.size() * (kLeastChunk + 3);
  std::string bytes;
  bytes.reserve(size);
  AppendVarint(&bytes, blocks.size());
  for (const PackedBlock& block : blocks) {
    bytes.push_back(static_cast<char>(block.codec));
    AppendVarint(&bytes, block.stored_size);
    AppendVarint(&bytes, block.raw_size);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(block.check >> shift));
    AppendVarint(&bytes, block.chunks.size());
    for (const PackedChunk& chunk : block.chunks) {
      AppendDigest(&bytes, chunk.id);
      AppendVarint(&bytes, chunk.size);
    }
  }
  return bytes;
}

Result<std::vector<PackedBlock>> DecodePackFooter(std::string_view footer) {
  ByteReader reader(footer);
  const uint64_t count = reader.Varint();
  if (count == 0 || count > reader.left() / kLeastBlock) {
    return Damaged("the footer of the pack", "it has not the blocks that it counts");
  }
  std::vector<PackedBlock> blocks(count);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!ReadBlock(&reader, &blocks[i])) {
      return Damaged("the footer of the pack", StrCat("block ", i, " of it cannot be"));
    }
  }
  if (!reader.AtEnd()) return Damaged("the footer of the pack", "there is something behind it");
  return blocks;
}

std::string EncodePackTail(size_t stored_footer_size) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(stored_footer_size >> shift));
  return bytes.append(kTailMagic);
}

Result<size_t> DecodePackTail(std::string_view tail) {
  if (tail.size() != kPackTailSize || !tail.ends_with(kTailMagic)) {
    return Damaged("the pack", "it does not end like a pack");
  }
  size_t size = 0;
  for (size_t i = 4; i-- > 0;) size = size << 8 | static_cast<unsigned char>(tail[i]);
  return size;
}

Digest PackId(std::string_view head, std::string_view stored_footer) {
  Sha256 hash;
  hash.Update(head.data(), head.size());
  hash.Update(stored_footer.data(), stored_footer.size());
  return hash.Finish();
}

std::string EncodePackIndex(const PackIndex& index) {
  size_t size = kIndexMagic.size() + 2 * kVarintMost + index.replaces.size() * 32;
  for (const IndexedPack& pack : index.packs) size += 33 + 3 * kVarintMost + pack.footer.size();
  std::string bytes;
  bytes.reserve(size);
  bytes.append(kIndexMagic);
  AppendVarint(&bytes, index.replaces.size());
  for (const Digest& id : index.replaces) AppendDigest(&bytes, id);
  AppendVarint(&bytes, index.packs.size());
  for (const IndexedPack& pack : index.packs) {
    AppendDigest(&bytes, pack.id);
    bytes.push_back(static_cast<char>(pack.kind));
    AppendVarint(&bytes, static_cast<uint64_t>(pack.size));
    AppendVarint(&bytes, static_cast<uint64_t>(pack.stored_footer_size));
    AppendBytes(&bytes, pack.footer);
  }
  return bytes;
}

Result<PackIndex> DecodePackIndex(std::string_view bytes) {
  if (!bytes.starts_with(kIndexMagic)) return Damaged("the index", "it does not begin like an index");
  ByteReader reader(bytes.substr(kIndexMagic.size()));
  PackIndex index;
  const uint64_t replaced = reader.Varint();
  if (replaced > reader.left() / 32) return Damaged("the index", "it has not the ids that it counts");
  index.replaces.resize(replaced);
  for (Digest& id : index.replaces) id = reader.Id();
  const uint64_t packs = reader.Varint();
  if (packs > reader.left() / kLeastIndexed)
    return Damaged("the index", "it has not the packs that it counts");
  index.packs.resize(packs);
  for (size_t i = 0; i < index.packs.size(); ++i) {
    if (!ReadIndexed(&reader, &index.packs[i]))
      return Damaged("the index", StrCat("pack ", i, " of it cannot be"));
  }
  if (!reader.AtEnd()) return Damaged("the index", "there is something behind it");
  return index;
}

}  // namespace overcap
