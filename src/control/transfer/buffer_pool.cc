// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/buffer_pool.h"

#include <algorithm>

namespace overcap {
namespace {

// Very large files have large parts (S3 takes 10,000 of them): of these some are on their way at once, too.
constexpr int64_t kAtOnce = 4, kMostForLarge = 192 << 20;

}  // namespace

BufferPool::Lease::Lease(BufferPool* pool, int64_t bytes) : pool_(pool), bytes_(bytes) {
  std::unique_lock lock(pool_->mutex_);
  const int64_t most = std::max(pool_->budget_, std::min(kAtOnce * bytes_, kMostForLarge));
  pool_->freed_.wait(lock, [&] { return pool_->used_ == 0 || pool_->used_ + bytes_ <= most; });
  pool_->used_ += bytes_;
  // The smallest that is large enough, else the largest: that is the least that has to be touched anew.
  std::vector<std::string>& kept = pool_->kept_;
  if (kept.empty()) return;
  const auto better = [&](const std::string& a, const std::string& b) {
    const bool a_fits = static_cast<int64_t>(a.capacity()) >= bytes_;
    const bool b_fits = static_cast<int64_t>(b.capacity()) >= bytes_;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a.capacity() < b.capacity() : a.capacity() > b.capacity();
  };
  const auto best = std::min_element(kept.begin(), kept.end(), better);
  pool_->kept_bytes_ -= static_cast<int64_t>(best->capacity());
  buffer_ = std::move(*best);
  kept.erase(best);
  // What is in use and what is kept shall not be more than the budget together.
  while (!kept.empty() && pool_->used_ + pool_->kept_bytes_ > pool_->budget_) {
    pool_->kept_bytes_ -= static_cast<int64_t>(kept.back().capacity());
    kept.pop_back();
  }
}

BufferPool::Lease::~Lease() {
  {
    const std::lock_guard lock(pool_->mutex_);
    pool_->used_ -= bytes_;
    const auto capacity = static_cast<int64_t>(buffer_.capacity());
    if (pool_->used_ + pool_->kept_bytes_ + capacity <= pool_->budget_) {
      pool_->kept_bytes_ += capacity;
      pool_->kept_.push_back(std::move(buffer_));
    }
  }
  pool_->freed_.notify_all();
}

}  // namespace overcap
