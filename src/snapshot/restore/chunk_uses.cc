// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/chunk_uses.h"

#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

Result<ChunkUse> UseOf(const Digest& id, int64_t length, uint32_t file, int64_t offset,
                       const ChunkIndex& index) {
  const std::optional<ChunkPlace> place = index.Find(id);
  if (!place) return Fail(ErrorCode::kNotFound, StrCat("no pack has its chunk '", id.Hex(), "'"));
  if (place->size != length) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("its chunk '", id.Hex(), "' has ", place->size, " bytes, not ", length));
  }
  return ChunkUse{place->pack, place->block, place->chunk, file, offset};
}

}  // namespace

std::vector<UseRun> CutIntoRuns(const std::vector<ChunkUse>& uses, const ChunkIndex& index,
                                int64_t run_bytes) {
  std::vector<UseRun> runs;
  int64_t bytes = 0;
  for (size_t at = 0; at < uses.size();) {
    const ChunkUse& first = uses[at];
    size_t end = at;
    while (end < uses.size() && uses[end].pack == first.pack && uses[end].block == first.block) ++end;
    if (runs.empty() || runs.back().pack != first.pack || bytes >= run_bytes) {
      runs.push_back({first.pack, at, at});
      bytes = 0;
    }
    bytes += index.pack(first.pack).blocks[first.block].stored_size;
    runs.back().end = at = end;
  }
  return runs;
}

std::vector<WantedBlock> BlocksOf(const std::vector<ChunkUse>& uses, const UseRun& run) {
  std::vector<WantedBlock> blocks;
  for (size_t at = run.begin; at < run.end; ++at) {
    const ChunkUse& use = uses[at];
    if (blocks.empty() || blocks.back().block != use.block) blocks.push_back({use.block, {}});
    std::vector<uint32_t>& chunks = blocks.back().chunks;
    if (chunks.empty() || chunks.back() != use.chunk) chunks.push_back(use.chunk);
  }
  return blocks;
}

Result<ChunkUse> UseOfWhole(const WantedTree& tree, uint32_t entry, const ChunkIndex& index) {
  return UseOf(tree[entry].id, tree[entry].size, entry, ChunkUse::kWhole, index);
}

Result<ChunkUse> UseOfPart(const PlacedPart& part, uint32_t file, const ChunkIndex& index) {
  return UseOf(part.part.id, part.part.length, file, part.offset, index);
}

}  // namespace overcap
