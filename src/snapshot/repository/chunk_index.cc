// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/chunk_index.h"

#include "base/text.h"
#include "snapshot/repository/chunk_index_state.h"

namespace overcap {

ChunkIndex::ChunkIndex() : state_(std::make_unique<State>()) {}
ChunkIndex::~ChunkIndex() = default;
ChunkIndex::ChunkIndex(ChunkIndex&&) noexcept = default;
ChunkIndex& ChunkIndex::operator=(ChunkIndex&&) noexcept = default;

ChunkPlace ChunkIndex::State::PlaceOf(uint32_t number) const {
  const IndexedChunk& chunk = chunks[number];
  const IndexedBlock& block = blocks[chunk.block];
  return {.pack = block.pack,
          .block = chunk.block - first_block[block.pack],
          .chunk = number - block.first_chunk,
          .offset = chunk.offset,
          .size = chunk.size};
}

std::optional<ChunkPlace> ChunkIndex::Find(const Digest& id) const {
  const uint32_t number = state_->chunks.Find(id);
  if (number == ChunkTable::kNone) return std::nullopt;
  return state_->PlaceOf(number);
}

bool ChunkIndex::HasForWriters(const Digest& id) const {
  const uint32_t number = state_->chunks.Find(id);
  return number != ChunkTable::kNone && !state_->CondemnedChunk(number);
}

const KnownPack& ChunkIndex::pack(uint32_t number) const {
  return state_->packs[number];
}

uint32_t ChunkIndex::pack_count() const {
  return static_cast<uint32_t>(state_->packs.size());
}

int64_t ChunkIndex::chunk_count() const {
  return state_->chunks.size();
}

void ChunkIndex::ForEach(const std::function<void(const Digest&, const ChunkPlace&)>& visit) const {
  for (uint32_t number = 0; number < state_->chunks.size(); ++number) {
    visit(state_->chunks[number].id, state_->PlaceOf(number));
  }
}

void ChunkIndex::ForEachInBlock(uint32_t pack, uint32_t block,
                                const std::function<void(const Digest&, const ChunkPlace&)>& visit) const {
  const uint32_t global = state_->first_block[pack] + block;
  const uint32_t end =
      global + 1 < state_->blocks.size() ? state_->blocks[global + 1].first_chunk : state_->chunks.size();
  for (uint32_t number = state_->blocks[global].first_chunk; number < end; ++number) {
    visit(state_->chunks[number].id, state_->PlaceOf(number));
  }
}

std::vector<PackedBlock> ChunkIndex::Footer(uint32_t pack) const {
  std::vector<PackedBlock> footer;
  const std::vector<BlockPlace>& blocks = state_->packs[pack].blocks;
  for (uint32_t block = 0; block < blocks.size(); ++block) {
    footer.push_back({.codec = blocks[block].codec,
                      .stored_size = blocks[block].stored_size,
                      .raw_size = blocks[block].raw_size,
                      .check = blocks[block].check,
                      .chunks = {}});
    ForEachInBlock(pack, block, [&](const Digest& id, const ChunkPlace& place) {
      footer.back().chunks.push_back({id, place.size});
    });
  }
  return footer;
}

namespace {

int64_t SizeOfPack(int64_t stored_footer_size, const std::vector<PackedBlock>& blocks) {
  int64_t size = static_cast<int64_t>(kPackHeadSize + kPackTailSize) + stored_footer_size;
  for (const PackedBlock& block : blocks) size += block.stored_size;
  return size;
}

}  // namespace

Result<void> ChunkIndex::AddPack(const Digest& id, int64_t size, int64_t stored_footer_size, ChunkKind kind,
                                 const std::vector<PackedBlock>& blocks, bool condemned) {
  if (SizeOfPack(stored_footer_size, blocks) != size) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("pack '", id.Hex(), "' does not have the size that its footer tells"));
  }
  State& state = *state_;
  const auto number = static_cast<uint32_t>(state.packs.size());
  state.first_block.push_back(static_cast<uint32_t>(state.blocks.size()));
  state.packs.push_back({id, kind, size, stored_footer_size, condemned, {}});
  std::vector<BlockPlace>& places = state.packs.back().blocks;
  places.reserve(blocks.size());
  int64_t offset = kPackHeadSize;
  for (const PackedBlock& block : blocks) {
    places.push_back({offset, block.stored_size, block.raw_size, block.check, block.codec});
    offset += block.stored_size;
    state.AddBlock(number, block);
  }
  return {};
}

void ChunkIndex::State::AddBlock(uint32_t pack, const PackedBlock& block) {
  for (const PackedChunk& chunk : block.chunks) chunks.Prefetch(chunk.id);
  const auto number = static_cast<uint32_t>(blocks.size());
  blocks.push_back({pack, chunks.size()});
  uint32_t offset = 0;
  for (const PackedChunk& chunk : block.chunks) {
    const uint32_t before = chunks.Add({chunk.id, number, offset, chunk.size});
    offset += chunk.size;
    if (before == ChunkTable::kNone || packs[pack].condemned) continue;
    if (CondemnedChunk(before)) chunks.Link(chunks.size() - 1);
  }
}

}  // namespace overcap
