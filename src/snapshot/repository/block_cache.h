// SPDX-License-Identifier: Apache-2.0
// The raw blocks used last.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace overcap {

// From any thread. A block that goes stays valid for whoever holds it.
class BlockCache {
 public:
  explicit BlockCache(int64_t most_bytes = 67'108'864) : most_bytes_(most_bytes) {}
  std::shared_ptr<const std::string> Find(uint32_t pack, uint32_t block);
  void Add(uint32_t pack, uint32_t block, std::shared_ptr<const std::string> raw);

 private:
  struct Kept {
    uint64_t key = 0;
    std::shared_ptr<const std::string> raw;
  };
  static uint64_t Key(uint32_t pack, uint32_t block) { return uint64_t{pack} << 32 | block; }

  const int64_t most_bytes_;
  std::mutex mutex_;      // guards what follows
  std::list<Kept> used_;  // the last one first
  std::unordered_map<uint64_t, std::list<Kept>::iterator> by_key_;
  int64_t bytes_ = 0;
};

}  // namespace overcap
