// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/chunker.h"

#include <algorithm>
#include <array>
#include <string>

#include "snapshot/sha256.h"

namespace overcap {
namespace {

using Gear = std::array<uint64_t, 256>;
using Byte = unsigned char;

constexpr int64_t kWindow = 64;  // bytes that the hash depends on
// "No bit of the highest n is set" is "less than 2^(64 - n)".
constexpr uint64_t kRareLimit = uint64_t{1} << (64 - 22);
constexpr uint64_t kCommonLimit = uint64_t{1} << (64 - 18);

Gear MakeGear() {
  Gear gear{};
  std::string text = "overcap gear ?";
  for (size_t i = 0; i < gear.size(); ++i) {
    text.back() = static_cast<char>(i);
    const Digest digest = Sha256Of(text);
    for (size_t byte = 8; byte-- > 0;) gear[i] = gear[i] << 8 | digest.bytes[byte];
  }
  return gear;
}

// Goes on until the hash is below `limit` and returns where that was, `end` if nowhere. The byte at `end` is
// not looked at. Unrolled: the chain of shift and add is all that a byte should cost.
const Byte* Scan(const Gear& gear, const Byte* at, const Byte* end, uint64_t limit, uint64_t* hash) {
  uint64_t h = *hash;
  for (; end - at >= 8; at += 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      h = (h << 1) + gear[at[i]];
      if (h < limit) [[unlikely]]
        return at + i;
    }
  }
  for (; at != end; ++at) {
    h = (h << 1) + gear[*at];
    if (h < limit) return at;
  }
  *hash = h;
  return end;
}

}  // namespace

int64_t NextChunk(std::string_view data, const ChunkSizes& sizes) {
  static const Gear gear = MakeGear();
  const int64_t most = std::min(static_cast<int64_t>(data.size()), sizes.max);
  if (most <= sizes.min) return most;
  const Byte* begin = reinterpret_cast<const Byte*>(data.data());
  // The last byte before which no chunk may end is at min - 1; the scans begin with it.
  const int64_t first = std::max<int64_t>(sizes.min - 1, 0);
  uint64_t hash = 0;
  for (int64_t i = std::max<int64_t>(sizes.min - kWindow, 0); i < first; ++i)
    hash = (hash << 1) + gear[begin[i]];
  const Byte* middle = begin + std::clamp(sizes.average, first, most);
  const Byte* end = begin + most;
  const Byte* cut = Scan(gear, begin + first, middle, kRareLimit, &hash);
  if (cut == middle) cut = Scan(gear, middle, end, kCommonLimit, &hash);
  return cut == end ? most : cut - begin + 1;
}

}  // namespace overcap
