// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/chunk_reader.h"

#include <mutex>

#include "base/text.h"
#include "snapshot/repository/block_cache.h"
#include "snapshot/repository/block_fetch.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {

struct ChunkReader::State {
  State(const Repository& repository_in, const ChunkIndex& index_in)
      : repository(repository_in), index(index_in), opener(repository_in) {}

  Result<std::shared_ptr<const std::string>> Block(uint32_t pack, uint32_t block);
  std::unique_ptr<BlockDecompressor> TakeDecompressor();
  void GiveBack(std::unique_ptr<BlockDecompressor> decompressor);

  const Repository& repository;
  const ChunkIndex& index;
  BlockOpener opener;
  BlockCache cache;
  std::mutex mutex;  // guards idle
  std::vector<std::unique_ptr<BlockDecompressor>> idle;
};

ChunkReader::ChunkReader(const Repository& repository, const ChunkIndex& index)
    : state_(std::make_unique<State>(repository, index)) {}
ChunkReader::~ChunkReader() = default;

Result<std::string> ChunkReader::Get(const Digest& id) {
  const std::optional<ChunkPlace> place = state_->index.Find(id);
  if (!place) {
    return Fail(ErrorCode::kNotFound, StrCat("chunk '", id.Hex(), "' is in no pack of the repository"));
  }
  OC_TRY(block, state_->Block(place->pack, place->block));
  const std::string_view bytes = std::string_view(*block).substr(place->offset, place->size);
  OC_TRY_VOID(CheckChunk(state_->index.pack(place->pack).id, id, bytes));
  return std::string(bytes);
}

Result<std::shared_ptr<const std::string>> ChunkReader::State::Block(uint32_t pack, uint32_t block) {
  if (std::shared_ptr<const std::string> cached = cache.Find(pack, block)) return cached;
  const KnownPack& known = index.pack(pack);
  const BlockPlace& place = known.blocks[block];
  OC_TRY(stored, repository.store().Get(PackKey(known.id), place.offset, place.stored_size));
  auto raw = std::make_shared<std::string>();
  std::unique_ptr<BlockDecompressor> decompressor = TakeDecompressor();
  const Result<void> opened =
      opener.Open(known.id, block, place, stored, place.raw_size, decompressor.get(), raw.get());
  GiveBack(std::move(decompressor));
  OC_TRY_VOID(opened);
  cache.Add(pack, block, raw);
  return std::shared_ptr<const std::string>(std::move(raw));
}

std::unique_ptr<BlockDecompressor> ChunkReader::State::TakeDecompressor() {
  const std::lock_guard lock(mutex);
  if (idle.empty()) return std::make_unique<BlockDecompressor>();
  std::unique_ptr<BlockDecompressor> decompressor = std::move(idle.back());
  idle.pop_back();
  return decompressor;
}

void ChunkReader::State::GiveBack(std::unique_ptr<BlockDecompressor> decompressor) {
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(decompressor));
}

}  // namespace overcap
