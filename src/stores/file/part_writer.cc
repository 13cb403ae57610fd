// SPDX-License-Identifier: Apache-2.0
#include "stores/file/part_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "stores/file/object_file.h"
#include "sys/clock.h"
#include "sys/fresh_open.h"

namespace overcap {
namespace {

constexpr size_t kAlignment = 4096;  // of memory, offsets and lengths: what every file system takes
constexpr size_t kBuffer = size_t{4} << 20;
constexpr size_t kSmallest = size_t{1} << 20;  // less is not worth it
constexpr int64_t kJudgedAfter = 64 << 20;
constexpr int64_t kSlow = 150;  // bytes per microsecond: the disk is no faster than a network

// Those that are known to take direct writes of several threads at their own speed.
bool IsMadeForIt(int fd) {
  constexpr long kXfs = 0x58465342;
  struct statfs found {};
  return fstatfs(fd, &found) == 0 && (found.f_type == EXT4_SUPER_MAGIC || found.f_type == kXfs);
}

int64_t NowUs() {
  return PosixClock().MonotonicUs();
}

}  // namespace

int WriteAt(int fd, int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
  return 0;
}

void PartWriter::Begin(int fd, int root, const std::string& path) {
  fd_ = fd;
  if (!IsMadeForIt(fd)) return;
  direct_fd_ = OpenRetrying(root, path, O_WRONLY | O_DIRECT | O_NOFOLLOW);
  direct_ = static_cast<bool>(direct_fd_);
}

int PartWriter::Write(int64_t offset, std::string_view bytes) {
  const size_t whole = bytes.size() / kAlignment * kAlignment;
  if (!direct_ || offset % static_cast<int64_t>(kAlignment) != 0 || whole < kSmallest)
    return WriteCached(offset, bytes);
  const int error = WriteDirect(offset, bytes.substr(0, whole));
  // Some let the flag be set and then want other sizes, or none.
  if (error == EINVAL || error == ENOTSUP) {
    direct_ = false;
    return WriteCached(offset, bytes);
  }
  if (error != 0) return error;
  return WriteCached(offset + static_cast<int64_t>(whole), bytes.substr(whole));
}

int PartWriter::WriteCached(int64_t offset, std::string_view bytes) {
  if (bytes.empty()) return 0;
  const std::lock_guard lock(writing_);
  return WriteAt(fd_, offset, bytes);
}

int PartWriter::WriteDirect(int64_t offset, std::string_view bytes) {
  const std::lock_guard lock(writing_);
  if (!buffer_) buffer_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, kBuffer)));
  if (!buffer_) return ENOMEM;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kBuffer);
    std::memcpy(buffer_.get(), bytes.data(), size);
    const int64_t begin = NowUs();
    if (const int error = WriteAt(direct_fd_.Get(), offset, {buffer_.get(), size}); error != 0) return error;
    Judge(static_cast<int64_t>(size), NowUs() - begin);
    bytes.remove_prefix(size);
    offset += static_cast<int64_t>(size);
  }
  return 0;
}

void PartWriter::Judge(int64_t bytes, int64_t took_us) {
  bytes_ += bytes;
  took_us_ += took_us;
  if (bytes_ < kJudgedAfter) return;
  if (bytes_ < kSlow * took_us_) direct_ = false;
  bytes_ = took_us_ = 0;
}

}  // namespace overcap
