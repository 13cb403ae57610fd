// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/scan_queue.h"

namespace overcap {

void ScanQueue::PushRoot(ScanTask task) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(task);
  ++unfinished_;
}

void ScanQueue::Finish(ScannedFolder* parent, const std::vector<int64_t>& cached) {
  const std::lock_guard lock(mutex_);
  size_t added = 0;
  for (size_t i = parent->entries.size(); i-- > 0;) {
    ScannedEntry& entry = parent->entries[i];
    if (!entry.seen.IsFolder()) continue;
    ScannedFolder& folder = folders_->emplace_back();
    folder.parent = parent;
    folder.self = &entry;
    folder.path_length = parent->path_length + 1 + entry.seen.name.size();
    entry.below = &folder;
    waiting_.push_back({&folder, cached[i]});
    ++added;
  }
  unfinished_ = unfinished_ + added - 1;
  if (unfinished_ == 0 || added > 1) changed_.notify_all();
}

std::optional<ScanTask> ScanQueue::Pop() {
  std::unique_lock lock(mutex_);
  // Every other thread ends its folder, gives up, or is stopped: it never waits for long.
  changed_.wait(lock, [this] { return given_up_ || unfinished_ == 0 || !waiting_.empty(); });
  if (given_up_ || waiting_.empty()) return std::nullopt;
  const ScanTask task = waiting_.back();
  waiting_.pop_back();
  return task;
}

void ScanQueue::GiveUp() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  changed_.notify_all();
}

}  // namespace overcap
