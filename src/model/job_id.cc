// SPDX-License-Identifier: Apache-2.0
#include "model/job_id.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text.h"

namespace overcap {
namespace {

bool IsUserCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string MakeJobId(std::string_view user, int64_t unix_seconds, uint32_t random) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string id(user.substr(0, 32));
  std::replace_if(
      id.begin(), id.end(), [](char c) { return !IsUserCharacter(c); }, '-');
  if (id.empty() || id[0] == '.' || id[0] == '-') id.insert(0, "u");
  id += '_' + std::to_string(unix_seconds) + '_';
  for (int shift = 28; shift >= 0; shift -= 4) id += kHex[(random >> shift) & 15];
  return id;
}

int64_t JobNumber(std::string_view id) {
  constexpr int64_t kEpoch = 1'577'836'800;  // 2020-01-01
  const size_t second = id.rfind('_');
  const size_t first = id.rfind('_', second - 1);
  const int64_t seconds = ParseInt(id.substr(first + 1, second - first - 1)).value_or(kEpoch);
  const std::string_view hex = id.substr(second + 1);
  uint32_t random = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), random, 16);
  return (((seconds - kEpoch) & 0x7fff'ffff) << 32) | random;
}

bool IsJobId(std::string_view text) {
  const size_t second = text.rfind('_');
  if (second == std::string_view::npos || text.size() > 80) return false;
  const size_t first = text.substr(0, second).find('_');
  if (first == std::string_view::npos || first == 0 || second - first < 2) return false;
  const std::string_view user = text.substr(0, first);
  const std::string_view time = text.substr(first + 1, second - first - 1);
  const std::string_view hex = text.substr(second + 1);
  return std::isalnum(static_cast<unsigned char>(user[0])) &&
         std::all_of(user.begin(), user.end(), IsUserCharacter) &&
         std::all_of(time.begin(), time.end(), IsDigit) && hex.size() == 8 &&
         std::all_of(hex.begin(), hex.end(), IsHex);
}

}  // namespace overcap
