// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "snapshot/backup/scan.h"

namespace overcap {

// A folder that is still to be looked at.
struct ScanTask {
  ScannedFolder* folder = nullptr;
  int64_t cached = -1;  // its number in the cache
};

// Folders that wait for a thread: last come, first served, so that few are open at a time.
class ScanQueue {
 public:
  explicit ScanQueue(std::deque<ScannedFolder>* folders) : folders_(folders) {}

  // Makes the folders below `parent` for all its entries of that type and queues them; then counts the task
  // of the parent as done. `cached` has a number for each of the entries.
  void Finish(ScannedFolder* parent, const std::vector<int64_t>& cached);
  void PushRoot(ScanTask task);
  // Waits for one; nullopt when all are done or one thread gave up.
  std::optional<ScanTask> Pop();
  void GiveUp();

 private:
  std::mutex mutex_;  // guards all below, and that folders are added
  std::condition_variable changed_;
  std::deque<ScannedFolder>* folders_;
  std::vector<ScanTask> waiting_;
  size_t unfinished_ = 0;  // waiting or in work
  bool given_up_ = false;
};

}  // namespace overcap
