// SPDX-License-Identifier: Apache-2.0
#include "snapshot/copy_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <linux/fs.h>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr int64_t kSmall = 64 << 10;  // one read and one write are as good as anything

bool CopyByBuffer(int from, int to, int64_t left) {
  std::array<char, kSmall> buffer;
  while (left > 0) {
    const ssize_t got = ReadSome(from, buffer.data(), static_cast<size_t>(std::min<int64_t>(left, kSmall)));
    if (got == 0) errno = EIO;
    if (got <= 0 || !WriteWhole(to, std::string_view(buffer.data(), static_cast<size_t>(got)))) return false;
    left -= got;
  }
  return true;
}

bool CopyInKernel(int from, int to, int64_t left) {
  while (left > 0) {
    const ssize_t put = copy_file_range(from, nullptr, to, nullptr, static_cast<size_t>(left), 0);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return false;
    // Not between these file systems, or a file system that says 0 for "cannot": from where it stopped.
    if (put <= 0) return CopyByBuffer(from, to, left);
    left -= put;
  }
  return true;
}

}  // namespace

bool FileCopier::Copy(int from, int to, int64_t size) {
  if (size == 0) return true;
  if (can_clone_) {
    if (ioctl(to, FICLONE, from) == 0) {
      cloned_ = true;
      return true;
    }
    if (errno == ENOSPC || errno == EDQUOT) return false;
    can_clone_ = false;
  }
  return size <= kSmall ? CopyByBuffer(from, to, size) : CopyInKernel(from, to, size);
}

}  // namespace overcap
