// SPDX-License-Identifier: Apache-2.0
#include "stores/hashed_line.h"

#include "base/text.h"
#include "net/http/digests.h"

namespace overcap {

std::string WithHashLine(std::string line) {
  const std::string hash = HexOf(Sha256OfText(line));
  return StrCat(line, '\n', hash, '\n');
}

std::optional<std::string_view> CheckedLine(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  if (bytes.substr(end + 1) != StrCat(HexOf(Sha256OfText(line)), '\n')) return std::nullopt;
  return line;
}

}  // namespace overcap
