// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;  // 64 random bits
};

// The kernel's randomness (getrandom); fit for ids and tokens.
class KernelRandom : public Random {
 public:
  uint64_t Next() override;
};

// splitmix64: the same seed gives the same numbers on every machine.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() override;
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace overcap
