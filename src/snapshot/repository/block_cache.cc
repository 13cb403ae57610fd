// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/block_cache.h"

namespace overcap {

std::shared_ptr<const std::string> BlockCache::Find(uint32_t pack, uint32_t block) {
  const std::lock_guard lock(mutex_);
  const auto it = by_key_.find(Key(pack, block));
  if (it == by_key_.end()) return nullptr;
  used_.splice(used_.begin(), used_, it->second);
  return it->second->raw;
}

void BlockCache::Add(uint32_t pack, uint32_t block, std::shared_ptr<const std::string> raw) {
  const std::lock_guard lock(mutex_);
  const uint64_t key = Key(pack, block);
  if (by_key_.contains(key)) return;
  bytes_ += static_cast<int64_t>(raw->size());
  used_.push_front({key, std::move(raw)});
  by_key_[key] = used_.begin();
  while (bytes_ > most_bytes_ && used_.size() > 1) {
    bytes_ -= static_cast<int64_t>(used_.back().raw->size());
    by_key_.erase(used_.back().key);
    used_.pop_back();
  }
}

}  // namespace overcap
