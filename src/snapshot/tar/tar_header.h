// SPDX-License-Identifier: Apache-2.0
// The 512 bytes before each entry of a tar file (ustar, GNU, pax, v7). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

constexpr size_t kTarBlock = 512;

// Where a field stands in the block.
struct TarField {
  size_t offset, size;
  std::string_view Of(std::string_view block) const { return block.substr(offset, size); }
};
constexpr TarField kTarName{0, 100}, kTarMode{100, 8}, kTarUid{108, 8}, kTarGid{116, 8}, kTarSize{124, 12},
    kTarTime{136, 12}, kTarChecksum{148, 8}, kTarType{156, 1}, kTarLink{157, 100}, kTarMagic{257, 8},
    kTarPrefix{345, 155};

// A number as tars write them: octal digits, or base 256 with the highest bit set. nullopt: it is none, or
// too large.
std::optional<int64_t> ParseTarNumber(std::string_view field);

// Text up to the first NUL.
std::string_view TarText(std::string_view field);

bool TarBlockIsZero(std::string_view block);
bool TarChecksumFits(std::string_view block);

// What a header of the ustar form can say; numbers that do not fit are written as the largest that do (a pax
// record then has the right one).
struct UstarHeader {
  std::string_view name, link;  // cut to their fields
  uint32_t mode = 0;
  int64_t uid = 0, gid = 0, size = 0, mtime = 0;
  char type = '0';
};
void AppendUstarHeader(const UstarHeader& header, std::string* out);

constexpr int64_t kUstarIdMost = 07777777, kUstarSizeMost = 077777777777;

}  // namespace overcap
