// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace overcap {

// Copies whole files, in the cheapest way that the two file systems allow; remembers when they cannot clone.
// May be used from several threads.
class FileCopier {
 public:
  // All `size` bytes of `from` to the empty file `to`. False with errno; EIO when `from` turns out shorter.
  bool Copy(int from, int to, int64_t size);
  bool Cloned() const { return cloned_; }

 private:
  std::atomic<bool> can_clone_ = true;
  std::atomic<bool> cloned_ = false;
};

}  // namespace overcap
