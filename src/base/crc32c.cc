// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#endif

namespace overcap {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
// Asked at the first use, not by __builtin_cpu_supports, which asks at the start of every process: CPUID is
// slow in virtual machines.
bool HasSse42() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0;
}

__attribute__((target("sse4.2"))) uint32_t Crc32cSse42(std::string_view data) {
  uint64_t crc = 0xFFFFFFFF;
  for (; data.size() >= sizeof crc; data.remove_prefix(sizeof crc)) {
    uint64_t word;
    std::memcpy(&word, data.data(), sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (const char byte : data) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}
#endif

}  // namespace

uint32_t Crc32cPortable(std::string_view data) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

uint32_t Crc32c(std::string_view data) {
#if defined(__x86_64__)
  static const bool fast = HasSse42();
  if (fast) return Crc32cSse42(data);
#endif
  return Crc32cPortable(data);
}

}  // namespace overcap
