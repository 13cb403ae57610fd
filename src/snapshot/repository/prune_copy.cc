// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/prune_copy.h"

#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/chunk_writer.h"

namespace overcap {
namespace {

// The chunks of a pack that are in use and that readers would look for here.
std::vector<WantedBlock> UsedBlocks(const RepositorySurvey& survey, uint32_t pack) {
  std::vector<WantedBlock> wanted;
  for (uint32_t block = 0; block < survey.index.pack(pack).blocks.size(); ++block) {
    WantedBlock of{.block = block, .chunks = {}};
    survey.index.ForEachInBlock(pack, block, [&](const Digest& id, const ChunkPlace& place) {
      if (survey.live.Has(id) && survey.index.Find(id)->pack == pack) of.chunks.push_back(place.chunk);
    });
    if (!of.chunks.empty()) wanted.push_back(std::move(of));
  }
  return wanted;
}

}  // namespace

Result<CopiedPacks> CopyUsedChunks(const Repository& repository, const RepositorySurvey& survey,
                                   const std::vector<uint32_t>& packs, std::unordered_set<Digest> leave) {
  CopiedPacks copied;
  if (packs.empty()) return copied;
  const std::unique_ptr<ChunkWriter> writer = ChunkWriter::StartForPrune(repository, std::move(leave));
  const std::unique_ptr<ChunkWriter::Lane> lane = writer->NewLane();
  PackReader reader(repository, survey.index);
  for (const uint32_t pack : packs) {
    bool whole = true;
    const ChunkKind kind = survey.index.pack(pack).kind;
    const auto on_chunk = [&](const BlockChunk& chunk) -> Result<void> {
      whole = whole && chunk.error == nullptr;
      if (chunk.error != nullptr) return {};
      copied.bytes += static_cast<int64_t>(chunk.bytes.size());
      OC_TRY_VOID(lane->Add(kind, chunk.bytes));
      return {};
    };
    OC_TRY_VOID(reader.Read(pack, UsedBlocks(survey, pack), on_chunk));
    if (whole) copied.packs.push_back(pack);
  }
  OC_TRY_VOID(lane->Flush());
  OC_TRY_VOID(writer->Finish());
  return copied;
}

}  // namespace overcap
