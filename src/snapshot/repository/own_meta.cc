// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/own_meta.h"

#include "snapshot/repository/block_fetch.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {

void OwnMeta::Append(const std::shared_ptr<OwnMetaBlock>& block, const Digest& id, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  chunks_[id] = {block, static_cast<uint32_t>(block->raw.size()), static_cast<uint32_t>(bytes.size())};
  block->raw.append(bytes);
}

void OwnMeta::Compressed(OwnMetaBlock* block, BlockCodec codec, std::shared_ptr<const std::string> stored) {
  const std::lock_guard lock(mutex_);
  block->codec = codec;
  block->stored = std::move(stored);
  block->raw_size = static_cast<uint32_t>(block->raw.size());
  block->raw = std::string();
}

void OwnMeta::Stored(const std::vector<std::shared_ptr<OwnMetaBlock>>& blocks, const Digest& pack,
                     const std::vector<PackedBlock>& footer) {
  const std::lock_guard lock(mutex_);
  int64_t offset = kPackHeadSize;
  for (uint32_t number = 0; number < blocks.size(); ++number) {
    OwnMetaBlock& block = *blocks[number];
    block.stored = nullptr;
    block.in_store = true;
    block.pack = pack;
    block.number = number;
    const PackedBlock& stored = footer[number];
    block.place = {offset, stored.stored_size, stored.raw_size, stored.check, stored.codec};
    offset += footer[number].stored_size;
  }
}

Result<std::optional<std::string>> OwnMeta::Get(const Repository& repository, const Digest& id) {
  Place place;
  OwnMetaBlock block;
  {
    const std::lock_guard lock(mutex_);
    const auto it = chunks_.find(id);
    if (it == chunks_.end()) return std::optional<std::string>();
    place = it->second;
    if (!place.block->raw.empty()) return std::optional(place.block->raw.substr(place.offset, place.size));
    block = *place.block;
  }
  BlockDecompressor decompressor;
  std::string raw;
  if (block.in_store) {
    OC_TRY(stored, repository.store().Get(PackKey(block.pack), block.place.offset, block.place.stored_size));
    OC_TRY_VOID(
        BlockOpener(repository)
            .Open(block.pack, block.number, block.place, stored, block.place.raw_size, &decompressor, &raw));
  } else {
    OC_TRY_VOID(decompressor.Decompress(block.codec, *block.stored, block.raw_size, &raw));
  }
  return std::optional(raw.substr(place.offset, place.size));
}

}  // namespace overcap
