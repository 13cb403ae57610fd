// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_header.h"

#include <algorithm>
#include <limits>

namespace overcap {
namespace {

std::optional<int64_t> ParseBase256(std::string_view field) {
  const bool negative = (static_cast<uint8_t>(field[0]) & 0x40) != 0;
  const uint8_t filler = negative ? 0xff : 0;
  // The highest bit only says that it is such a number; the next one is the sign.
  uint64_t value = negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < field.size(); ++i) {
    uint8_t byte = static_cast<uint8_t>(field[i]);
    if (i == 0) byte = negative ? byte | 0x80 : byte & 0x7f;
    if (static_cast<uint8_t>(value >> 56) != filler) return std::nullopt;
    value = (value << 8) | byte;
  }
  const auto number = static_cast<int64_t>(value);
  if ((number < 0) != negative) return std::nullopt;
  return number;
}

std::optional<int64_t> ParseOctal(std::string_view field) {
  const size_t begin = field.find_first_not_of(' ');
  if (begin == std::string_view::npos || field[begin] == '\0') return 0;
  field.remove_prefix(begin);
  int64_t value = 0;
  size_t digits = 0;
  for (; digits < field.size() && field[digits] >= '0' && field[digits] <= '7'; ++digits) {
    if (value > std::numeric_limits<int64_t>::max() / 8) return std::nullopt;
    value = value * 8 + (field[digits] - '0');
  }
  const bool ended = digits == field.size() || field[digits] == ' ' || field[digits] == '\0';
  return digits > 0 && ended ? std::optional(value) : std::nullopt;
}

void PutOctal(int64_t value, TarField field, char* block) {
  const size_t digits = field.size - 1;
  const int64_t most = (int64_t{1} << (3 * digits)) - 1;
  value = std::clamp<int64_t>(value, 0, most);
  for (size_t i = digits; i-- > 0; value /= 8) block[field.offset + i] = static_cast<char>('0' + value % 8);
}

void PutText(std::string_view text, TarField field, char* block) {
  std::copy_n(text.data(), std::min(text.size(), field.size), block + field.offset);
}

}  // namespace

std::optional<int64_t> ParseTarNumber(std::string_view field) {
  if (field.empty()) return std::nullopt;
  return (static_cast<uint8_t>(field[0]) & 0x80) != 0 ? ParseBase256(field) : ParseOctal(field);
}

std::string_view TarText(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

bool TarBlockIsZero(std::string_view block) {
  return block.find_first_not_of('\0') == std::string_view::npos;
}

bool TarChecksumFits(std::string_view block) {
  const auto told = ParseTarNumber(kTarChecksum.Of(block));
  if (!told) return false;
  // Some old programs have added up signed bytes.
  int64_t sum = 0, signed_sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    const bool own = i >= kTarChecksum.offset && i < kTarChecksum.offset + kTarChecksum.size;
    sum += own ? ' ' : static_cast<uint8_t>(block[i]);
    signed_sum += own ? ' ' : static_cast<signed char>(block[i]);
  }
  return *told == sum || *told == signed_sum;
}

void AppendUstarHeader(const UstarHeader& header, std::string* out) {
  const size_t begin = out->size();
  out->append(kTarBlock, '\0');
  char* block = out->data() + begin;
  PutText(header.name, kTarName, block);
  PutText(header.link, kTarLink, block);
  PutOctal(header.mode, kTarMode, block);
  PutOctal(header.uid, kTarUid, block);
  PutOctal(header.gid, kTarGid, block);
  PutOctal(header.size, kTarSize, block);
  PutOctal(header.mtime, kTarTime, block);
  PutText(std::string_view("ustar\00000", 8), kTarMagic, block);
  block[kTarType.offset] = header.type;
  PutText("        ", kTarChecksum, block);
  int64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>(block[i]);
  PutOctal(sum, {kTarChecksum.offset, 7}, block);
  block[kTarChecksum.offset + 6] = '\0';
}

}  // namespace overcap
