// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/read_queue.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr int64_t kLarge = 1 << 20;  // files beyond it are read before all others
constexpr size_t kBatchFiles = 64;   // small ones that a thread takes at once
constexpr int64_t kBatchBytes = 1 << 20;

int64_t SizeOf(const ReadJob& job) {
  return job.entry->seen.stamp.size;
}

}  // namespace

ReadQueue::ReadQueue(std::vector<ReadJob> jobs) {
  for (const ReadJob& job : jobs) (SizeOf(job) > kLarge ? large_ : small_).push_back(job);
  std::stable_sort(large_.begin(), large_.end(),
                   [](const ReadJob& a, const ReadJob& b) { return SizeOf(a) > SizeOf(b); });
}

std::optional<ReadStep> ReadQueue::Next() {
  const std::lock_guard lock(mutex_);
  ReadStep step;
  if (!shared_.empty()) {
    Shared& first = shared_.front();
    step.file = first.file;
    step.piece = first.next++;
    if (first.next == step.file->pieces.size()) shared_.pop_front();
    return step;
  }
  if (next_large_ < large_.size()) {
    step.large = &large_[next_large_++];
    return step;
  }
  if (next_small_ == small_.size()) return std::nullopt;
  const size_t begin = next_small_;
  int64_t bytes = 0;
  while (next_small_ < small_.size() && next_small_ - begin < kBatchFiles && bytes < kBatchBytes) {
    bytes += SizeOf(small_[next_small_++]);
  }
  step.small = std::span(small_).subspan(begin, next_small_ - begin);
  return step;
}

void ReadQueue::Share(std::shared_ptr<SharedFile> file) {
  const std::lock_guard lock(mutex_);
  shared_.push_back({std::move(file), 0});
}

}  // namespace overcap
