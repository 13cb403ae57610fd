// SPDX-License-Identifier: Apache-2.0
// Which chunks a writer has taken on, from all its lanes.
#pragma once

#include <array>
#include <mutex>

#include "snapshot/repository/digest_table.h"

namespace overcap {

class ClaimSet {
 public:
  // True once per id: whoever gets it stores the chunk.
  bool Claim(const Digest& id) {
    Shard& shard = ShardOf(id);
    const std::lock_guard lock(shard.mutex);
    if (shard.claims.Find(id) != Claims::kNone) return false;
    shard.claims.Add({id});
    return true;
  }
  bool Has(const Digest& id) {
    Shard& shard = ShardOf(id);
    const std::lock_guard lock(shard.mutex);
    return shard.claims.Find(id) != Claims::kNone;
  }

 private:
  struct ClaimedChunk {
    Digest id;
  };
  using Claims = DigestTable<ClaimedChunk>;
  struct alignas(64) Shard {
    std::mutex mutex;  // guards claims
    Claims claims;
  };
  static constexpr size_t kShards = 16;

  Shard& ShardOf(const Digest& id) { return shards_[id.bytes[0] % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace overcap
