// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "snapshot/sha256.h"

namespace overcap {

// Copies whole files that are known by their hash, in the cheapest way that the two file systems allow;
// remembers when they cannot clone. May be used from several threads.
class FileCopier {
 public:
  enum class Outcome {
    kGood,     // `to` holds the bytes with this hash
    kDamaged,  // `from` has others
    kFailed,   // errno says why
  };

  // All of `from` to the empty file `to`, which is open for reading too.
  Outcome Copy(int from, int to, const Digest& expected);
  bool Cloned() const { return cloned_; }

 private:
  std::atomic<bool> can_clone_ = true;
  std::atomic<bool> cloned_ = false;
};

}  // namespace overcap
