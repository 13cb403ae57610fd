// SPDX-License-Identifier: Apache-2.0
// A compact hash table by SHA-256: the entries in the order in which they came, and 5 bytes per slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "snapshot/sha256.h"

namespace overcap {

// `Entry` has a member `id`. Several entries may have one id: one of them is linked (found by Find). At most
// 2^32 - 2 entries.
template <typename Entry>
class DigestTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void Reserve(size_t count) {
    entries_.reserve(count);
    if (count * 4 > slots_.size() * 3) Rehash(count);
  }

  // The number of the linked entry, or kNone.
  uint32_t Find(const Digest& id) const { return slots_.empty() ? kNone : slots_[SlotOf(id)]; }

  // Appends; linked when no entry of this id was. Says which entry of the id was linked before, or kNone.
  uint32_t Add(const Entry& entry) {
    if ((entries_.size() + 1) * 4 > slots_.size() * 3) Rehash(entries_.size() * 2 + 16);
    const size_t slot = SlotOf(entry.id);
    const uint32_t before = slots_[slot];
    if (before == kNone) Fill(slot, entry.id, static_cast<uint32_t>(entries_.size()));
    entries_.push_back(entry);
    return before;
  }

  // Makes this entry the one that is found.
  void Link(uint32_t number) { slots_[SlotOf(entries_[number].id)] = number; }

  // Hides the latency of memory when many ids are looked up or added in a row.
  void Prefetch(const Digest& id) const {
    if (slots_.empty()) return;
    const size_t slot = Hash(id) & (slots_.size() - 1);
    __builtin_prefetch(&slots_[slot]);
    __builtin_prefetch(&tags_[slot]);
  }

  const Entry& operator[](uint32_t number) const { return entries_[number]; }
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }

 private:
  // Ids are hashes already; whoever could choose them badly could also choose the content.
  static size_t Hash(const Digest& id) {
    uint64_t value;
    std::memcpy(&value, id.bytes.data() + 8, sizeof value);
    return value;
  }

  size_t SlotOf(const Digest& id) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = Hash(id) & mask;
    while (slots_[slot] != kNone && (tags_[slot] != Tag(id) || entries_[slots_[slot]].id != id)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  // Tells most neighbours apart without a look at their entries, which are far away in memory.
  static uint8_t Tag(const Digest& id) { return id.bytes[16]; }

  void Fill(size_t slot, const Digest& id, uint32_t number) {
    slots_[slot] = number;
    tags_[slot] = Tag(id);
  }

  void Rehash(size_t count) {
    const std::vector<uint32_t> old = std::move(slots_);
    size_t size = 32;
    while (size * 3 < count * 4) size *= 2;
    slots_.assign(size, kNone);
    tags_.assign(size, 0);
    for (const uint32_t number : old) {
      if (number != kNone) Fill(SlotOf(entries_[number].id), entries_[number].id, number);
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // a power of two; numbers of entries
  std::vector<uint8_t> tags_;    // by slot
};

}  // namespace overcap
