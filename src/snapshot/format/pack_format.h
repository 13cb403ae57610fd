// SPDX-License-Identifier: Apache-2.0
// The bytes of packs and indexes (docs/formats/snapshot.md). Pure; parsers take any bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/block_codec.h"
#include "snapshot/sha256.h"

namespace overcap {

enum class ChunkKind : char { kData = 'd', kMeta = 'm' };

struct PackedChunk {
  Digest id;
  uint32_t size = 0;

  bool operator==(const PackedChunk&) const = default;
};

struct PackedBlock {
  BlockCodec codec = BlockCodec::kStored;
  uint32_t stored_size = 0;
  uint32_t raw_size = 0;
  uint32_t check = 0;  // CRC-32C of the bytes as stored: damage that no decoder notices is found too
  std::vector<PackedChunk> chunks;

  bool operator==(const PackedBlock&) const = default;
};

constexpr size_t kPackHeadSize = 64;
constexpr size_t kPackTailSize = 12;

struct PackHead {
  ChunkKind kind = ChunkKind::kData;
  bool encrypted = false;
  std::array<uint8_t, 32> salt{};  // random also when plain: no two packs have the same id

  std::string Encode() const;  // kPackHeadSize bytes
  static Result<PackHead> Decode(std::string_view bytes);
};

std::string EncodePackFooter(const std::vector<PackedBlock>& blocks);
// In the plain. kCorrupt unless it is exactly what EncodePackFooter gives for blocks that are allowed.
Result<std::vector<PackedBlock>> DecodePackFooter(std::string_view footer);

std::string EncodePackTail(size_t stored_footer_size);
Result<size_t> DecodePackTail(std::string_view tail);  // size of the stored footer

// SHA-256 of head and stored footer.
Digest PackId(std::string_view head, std::string_view stored_footer);

struct IndexedPack {
  Digest id;
  ChunkKind kind = ChunkKind::kData;
  int64_t size = 0;                // of the pack in the store
  int64_t stored_footer_size = 0;  // as it is in the pack
  std::string footer;              // in the plain
};

struct PackIndex {
  std::vector<Digest> replaces;
  std::vector<IndexedPack> packs;
};

std::string EncodePackIndex(const PackIndex& index);
// Footers are not decoded here: DecodePackFooter, one by one.
Result<PackIndex> DecodePackIndex(std::string_view bytes);

}  // namespace overcap
