// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_prover.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unistd.h>

namespace overcap {
namespace {

constexpr size_t kBuffer = 1 << 20;

// A file system that knows no holes has data everywhere.
int64_t NextData(int fd, int64_t at, int64_t end) {
  const off_t data = lseek(fd, at, SEEK_DATA);
  if (data >= 0) return data;
  return errno == ENXIO ? end : at;
}

}  // namespace

bool ContentProver::IsContentOf(int fd, const WantedEntry& wanted) {
  buffer_.resize(kBuffer);
  ContentCursor cursor(wanted, get_);
  while (true) {
    const Result<std::optional<PlacedPart>> next = cursor.Next();
    if (!next) return false;
    if (!*next) return true;
    if (!SamePart(fd, **next)) return false;
  }
}

bool ContentProver::SamePart(int fd, const PlacedPart& placed) {
  const bool hole = placed.part.kind == ContentPart::Kind::kHole;
  Sha256 hash;
  const int64_t end = placed.offset + placed.part.length;
  for (int64_t at = placed.offset; at < end;) {
    if (hole) at = std::min(NextData(fd, at, end), end);
    if (at == end) break;
    const ssize_t got =
        pread(fd, buffer_.data(), static_cast<size_t>(std::min<int64_t>(kBuffer, end - at)), at);
    if (got <= 0) return false;
    const size_t size = static_cast<size_t>(got);
    if (hole && !AllZero(size)) return false;
    if (!hole) hash.Update(buffer_.data(), size);
    at += got;
  }
  return hole || hash.Finish() == placed.part.id;
}

bool ContentProver::AllZero(size_t size) const {
  return size == 0 || (buffer_[0] == 0 && memcmp(buffer_.data(), buffer_.data() + 1, size - 1) == 0);
}

}  // namespace overcap
