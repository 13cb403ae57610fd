// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace overcap {

// Memory that copies travel through: so much in all, used again from one to the next. Any number of threads.
class BufferPool {
 public:
  explicit BufferPool(int64_t budget) : budget_(budget) {}

  // Memory for `bytes`, back at its end; waits until so much is free. Beyond the budget four large ones
  // are given at once as long as they are not more than 192 MiB, and always one.
  class Lease {
   public:
    Lease(BufferPool* pool, int64_t bytes);
    Lease(const Lease&) = delete;
    ~Lease();
    std::string& buffer() { return buffer_; }

   private:
    BufferPool* const pool_;
    const int64_t bytes_;
    std::string buffer_;
  };

 private:
  const int64_t budget_;
  std::mutex mutex_;  // guards all below
  std::condition_variable freed_;
  int64_t used_ = 0;
  int64_t kept_bytes_ = 0;
  std::vector<std::string> kept_;
};

}  // namespace overcap
