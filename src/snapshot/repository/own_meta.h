// SPDX-License-Identifier: Apache-2.0
// Meta chunks of a writer that is still at work: its own trees can be read before their pack is put.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "snapshot/format/block_codec.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/sha256.h"

namespace overcap {

// A block on its way: first raw, then compressed, then only a place in a pack of the store. Everything in it
// is guarded by OwnMeta's mutex, but the lane that fills it may read `raw` without.
struct OwnMetaBlock {
  std::string raw;
  std::shared_ptr<const std::string> stored;
  BlockCodec codec = BlockCodec::kStored;
  uint32_t raw_size = 0;
  bool in_store = false;
  Digest pack;
  uint32_t number = 0;
  BlockPlace place;
};

class OwnMeta {
 public:
  void Append(const std::shared_ptr<OwnMetaBlock>& block, const Digest& id, std::string_view bytes);
  void Compressed(OwnMetaBlock* block, BlockCodec codec, std::shared_ptr<const std::string> stored);
  // All blocks of a pack that is in the store now, in order.
  void Stored(const std::vector<std::shared_ptr<OwnMetaBlock>>& blocks, const Digest& pack,
              const std::vector<PackedBlock>& footer);
  // nullopt: not one of this writer's.
  Result<std::optional<std::string>> Get(const Repository& repository, const Digest& id);

 private:
  struct Place {
    std::shared_ptr<OwnMetaBlock> block;
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  std::mutex mutex_;  // guards chunks_ and all blocks
  std::unordered_map<Digest, Place> chunks_;
};

}  // namespace overcap
