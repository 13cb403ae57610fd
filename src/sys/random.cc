// SPDX-License-Identifier: Apache-2.0
#include "sys/random.h"

#include <cstdlib>
#include <sys/random.h>

namespace overcap {

uint64_t KernelRandom::Next() {
  uint64_t value = 0;
  // 8 bytes are never split or interrupted once the kernel's pool is up; without it there is no way to go on.
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}

uint64_t SeededRandom::Next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace overcap
