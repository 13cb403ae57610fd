// SPDX-License-Identifier: Apache-2.0
// What a ChunkIndex holds. 44 bytes per chunk and 7 to 13 for its slot; chunks of a block, and blocks of a
// pack, stand one after the other.
#pragma once

#include <vector>

#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/digest_table.h"

namespace overcap {

struct IndexedChunk {
  Digest id;
  uint32_t block = 0;  // counted over all packs
  uint32_t offset = 0;
  uint32_t size = 0;
};

struct IndexedBlock {
  uint32_t pack = 0;
  uint32_t first_chunk = 0;
};

using ChunkTable = DigestTable<IndexedChunk>;

struct ChunkIndex::State {
  std::vector<KnownPack> packs;
  std::vector<uint32_t> first_block;  // by pack
  std::vector<IndexedBlock> blocks;
  ChunkTable chunks;

  ChunkPlace PlaceOf(uint32_t number) const;
  bool CondemnedChunk(uint32_t number) const { return packs[blocks[chunks[number].block].pack].condemned; }
  void AddBlock(uint32_t pack, const PackedBlock& block);
};

}  // namespace overcap
