// SPDX-License-Identifier: Apache-2.0
#include "stores/object_requests.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/store.h"
#include "sys/random.h"

namespace overcap {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8Length(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

int64_t SizeOfPieces(std::span<const std::string_view> pieces) {
  size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  return static_cast<int64_t>(size);
}

std::vector<std::string_view> SliceOfPieces(std::span<const std::string_view> pieces, int64_t offset,
                                            int64_t size) {
  std::vector<std::string_view> out;
  auto skip = static_cast<size_t>(offset), left = static_cast<size_t>(size);
  for (const std::string_view piece : pieces) {
    if (left == 0) break;
    if (skip >= piece.size()) {
      skip -= piece.size();
      continue;
    }
    out.push_back(piece.substr(skip, left));
    skip = 0;
    left -= out.back().size();
  }
  return out;
}

std::string ByteRange(int64_t offset, int64_t limit) {
  if (limit > Store::kAll - offset) return StrCat("bytes=", offset, "-");
  return StrCat("bytes=", offset, "-", offset + std::max<int64_t>(limit, 1) - 1);
}

std::string_view WithoutQuotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') return etag.substr(1, etag.size() - 2);
  return etag;
}

std::string_view PlainWord(std::string_view text) {
  constexpr size_t kLongestWord = 100;
  const bool plain = text.size() <= kLongestWord && std::all_of(text.begin(), text.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                              c == '.' || c == '_' || c == '-';
                     });
  return plain ? text : std::string_view();
}

std::string NewPutMark() {
  KernelRandom random;
  const uint64_t bits[2] = {random.Next(), random.Next()};
  return HexOf({reinterpret_cast<const uint8_t*>(bits), sizeof bits});
}

}  // namespace overcap
