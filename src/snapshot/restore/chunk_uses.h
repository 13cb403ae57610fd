// SPDX-License-Identifier: Apache-2.0
// Which chunk goes where: the work of a restore in the order of the packs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/format/content_map.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/restore/content_cursor.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// One place that a chunk is written to.
struct ChunkUse {
  static constexpr int64_t kWhole = -1;

  uint32_t pack = 0;
  uint32_t block = 0;
  uint32_t chunk = 0;
  uint32_t file = 0;  // number of the entry, or of the large file
  int64_t offset = kWhole;

  bool SameChunk(const ChunkUse& other) const {
    return pack == other.pack && block == other.block && chunk == other.chunk;
  }
  bool operator<(const ChunkUse& other) const {
    if (pack != other.pack) return pack < other.pack;
    if (block != other.block) return block < other.block;
    return chunk != other.chunk ? chunk < other.chunk : file < other.file;
  }
};

// Uses [begin, end), all in one pack: what a thread takes at once.
struct UseRun {
  uint32_t pack = 0;
  size_t begin = 0, end = 0;
};

// `uses` are sorted. Runs end at the end of a pack, or of a block when they have so many stored bytes. Pure.
std::vector<UseRun> CutIntoRuns(const std::vector<ChunkUse>& uses, const ChunkIndex& index,
                                int64_t run_bytes);
std::vector<WantedBlock> BlocksOf(const std::vector<ChunkUse>& uses, const UseRun& run);

// Where the whole content of a file with one chunk is; kNotFound or kCorrupt.
Result<ChunkUse> UseOfWhole(const WantedTree& tree, uint32_t entry, const ChunkIndex& index);
Result<ChunkUse> UseOfPart(const PlacedPart& part, uint32_t file, const ChunkIndex& index);

}  // namespace overcap
