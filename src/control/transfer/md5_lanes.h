// SPDX-License-Identifier: Apache-2.0
// MD5s of several contents at once: each takes its steps one after the other, which leaves most of the
// processor idle, so the steps of up to eight are done together.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

constexpr size_t kMd5Lanes = 8;

// One content on its way: its state, and what is still to be added, in blocks of 64 bytes.
class Md5Lane {
 public:
  explicit Md5Lane(std::string_view bytes);
  Md5Lane(const Md5Lane&) = delete;
  size_t blocks() const { return blocks_; }  // that follow at once; 0: it is complete
  std::string Bytes() const;                 // of one that is complete: 16
  // Up to kMd5Lanes of them take so many blocks, which all must have.
  static void Advance(const std::vector<Md5Lane*>& lanes, size_t blocks);

 private:
  void Took(size_t blocks);

  uint32_t state_[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const uint8_t* at_;
  size_t blocks_;
  uint8_t tail_[128] = {};  // the rest of the content, what MD5 adds behind it
  size_t tail_blocks_;
};

// Whether eight cost little more than one on this processor.
bool HasMd5Lanes();

// For threads that each have a content: whoever comes while others wait works for all of them.
class Md5Crew {
 public:
  std::string Hash(std::string_view bytes);  // 16 bytes

 private:
  struct Order {
    Md5Lane lane;       // of whoever works on it, who does that without the lock
    bool done = false;  // guarded
  };
  void WorkUntilDone(const Order& own, std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Order*> waiting_;
  bool working_ = false;
};

}  // namespace overcap
