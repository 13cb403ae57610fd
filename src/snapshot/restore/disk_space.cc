// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/disk_space.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr int64_t kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e;

int64_t FreeBytes(const struct statfs& status) {
  return static_cast<int64_t>(status.f_bavail) * static_cast<int64_t>(status.f_bsize);
}

bool Compresses(const struct statfs& status) {
  const int64_t type = static_cast<int64_t>(static_cast<uint32_t>(status.f_type));
  return type == BTRFS_SUPER_MAGIC || type == kZfs || type == kBcachefs;
}

}  // namespace

Error DiskFull(int folder_fd, const std::string& folder, int64_t needed_bytes) {
  struct statfs status;
  const bool known = fstatfs(folder_fd, &status) == 0;
  std::string text =
      StrCat("no space is left in '", folder, "': ", FormatBytes(needed_bytes), " more are needed");
  if (known) text += StrCat(", ", FormatBytes(FreeBytes(status)), " are free");
  if (known && status.f_files > 0 && status.f_ffree == 0) text += ", and no more files can be made";
  return {ErrorCode::kUnavailable, std::move(text),
          "free some space or take another folder, then start it again: it goes on from there"};
}

std::optional<Error> WillNotFit(int folder_fd, const std::string& folder, int64_t needed_bytes) {
  struct statfs status;
  if (fstatfs(folder_fd, &status) != 0 || status.f_blocks == 0 || Compresses(status)) return std::nullopt;
  if (needed_bytes <= FreeBytes(status)) return std::nullopt;
  return DiskFull(folder_fd, folder, needed_bytes);
}

}  // namespace overcap
