// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "sys/fd.h"

namespace overcap {

// Writes all of it at its place; 0 or an errno.
int WriteAt(int fd, int64_t offset, std::string_view bytes);

// Writes parts of a large file, each where it belongs: past the page cache, where file system and disk are
// quick at that. A large download fills the cache with what nobody may read soon, and finding the memory for
// it costs more processor time than all else that is done with the bytes. A slow disk is left to the cache,
// so that nobody waits for it. Any number of threads.
class PartWriter {
 public:
  // `fd` is open for writing and outlives it; `path` below `root` is the same file.
  void Begin(int fd, int root, const std::string& path);
  int Write(int64_t offset, std::string_view bytes);  // all of it; 0 or an errno

 private:
  int WriteDirect(int64_t offset, std::string_view bytes);
  int WriteCached(int64_t offset, std::string_view bytes);
  void Judge(int64_t bytes, int64_t took_us);

  int fd_ = -1;
  Fd direct_fd_;
  std::atomic<bool> direct_{false};
  std::mutex writing_;  // a file takes one write at a time: whoever waits shall sleep, not spin in the kernel
  // Guarded by writing_:
  std::unique_ptr<char, decltype(&std::free)> buffer_{nullptr, &std::free};  // direct writes want whole pages
  int64_t bytes_ = 0, took_us_ = 0;  // of direct writes since the last judgement
};

}  // namespace overcap
