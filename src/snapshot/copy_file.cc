// SPDX-License-Identifier: Apache-2.0
#include "snapshot/copy_file.h"

#include <cerrno>
#include <linux/fs.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "snapshot/file_io.h"

namespace overcap {
namespace {

using Outcome = FileCopier::Outcome;

constexpr size_t kPiece = 256 << 10;

Outcome Compare(const Digest& found, const Digest& expected) {
  return found == expected ? Outcome::kGood : Outcome::kDamaged;
}

// The bytes have to be read for their hash, so they are written from the same buffer.
Outcome CopyByBuffer(int from, int to, const Digest& expected) {
  Sha256 hash;
  std::string buffer(kPiece, '\0');
  while (true) {
    const ssize_t got = ReadSome(from, buffer.data(), buffer.size());
    if (got < 0) return Outcome::kFailed;
    if (got == 0) return Compare(hash.Finish(), expected);
    hash.Update(buffer.data(), static_cast<size_t>(got));
    if (!WriteWhole(to, std::string_view(buffer.data(), static_cast<size_t>(got)))) return Outcome::kFailed;
  }
}

// Hashes the clone, not what it was made from: nobody else can write to it.
Outcome CheckClone(int clone, const Digest& expected) {
  int64_t bytes = 0;
  const std::optional<Digest> found = HashToEnd(clone, &bytes);
  return found ? Compare(*found, expected) : Outcome::kFailed;
}

}  // namespace

Outcome FileCopier::Copy(int from, int to, const Digest& expected) {
  if (can_clone_) {
    if (ioctl(to, FICLONE, from) == 0) {
      cloned_ = true;
      return CheckClone(to, expected);
    }
    if (errno == ENOSPC || errno == EDQUOT) return Outcome::kFailed;
    can_clone_ = false;
  }
  return CopyByBuffer(from, to, expected);
}

}  // namespace overcap
