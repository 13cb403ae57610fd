// SPDX-License-Identifier: Apache-2.0
// Finds positions in a list by what stands there. A value that is quick to copy: one block of memory.
#pragma once

#include <cstdint>
#include <vector>

namespace overcap::pooled {

// One number out of two, spread well.
constexpr uint64_t MixedHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

class FlatIndex {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  // The position with this hash for which `is(position)` holds; kNone: there is none.
  template <typename Is>
  uint32_t Find(uint64_t hash, const Is& is) const {
    if (slots_.empty()) return kNone;
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].position == kNone) return kNone;
      if (slots_[at].hash == static_cast<uint32_t>(hash >> 32) && is(slots_[at].position))
        return slots_[at].position;
    }
  }

  // It must not be there yet. `hash_of(position)` tells those of the others when they move.
  template <typename HashOf>
  void Add(uint64_t hash, uint32_t position, const HashOf& hash_of) {
    if (slots_.size() < 2 * (count_ + 1)) {
      std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
      old.swap(slots_);
      for (const Slot& slot : old) {
        if (slot.position != kNone) Put(hash_of(slot.position), slot.position);
      }
    }
    Put(hash, position);
    ++count_;
  }

 private:
  struct Slot {
    uint32_t hash = 0, position = kNone;
  };
  void Put(uint64_t hash, uint32_t position) {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].position != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {static_cast<uint32_t>(hash >> 32), position};
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half in use
  size_t count_ = 0;
};

}  // namespace overcap::pooled
