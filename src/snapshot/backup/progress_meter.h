// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "snapshot/backup/backup.h"
#include "sys/clock.h"

namespace overcap {

// Tells how far a backup is, ten times a second at most, whoever counts.
class ProgressMeter {
 public:
  ProgressMeter(const std::function<void(const BackupProgress&)>& tell, const Clock& clock)
      : tell_(tell), clock_(clock) {}

  std::atomic<bool> scanning = true;
  std::atomic<int64_t> entries = 0, files_done = 0, files_total = 0, bytes_done = 0, bytes_total = 0,
                       stored_bytes = 0;

  // Cheap when nobody listens or it was told a moment ago.
  void Tick() {
    if (!tell_) return;
    const int64_t now = clock_.MonotonicUs();
    int64_t next = next_us_;
    if (now < next || !next_us_.compare_exchange_strong(next, now + kEveryUs)) return;
    Tell();
  }
  // In any case.
  void Tell() {
    if (!tell_) return;
    const std::lock_guard lock(mutex_);
    tell_({scanning, entries, files_done, files_total, bytes_done, bytes_total, stored_bytes});
  }

 private:
  static constexpr int64_t kEveryUs = 100'000;

  const std::function<void(const BackupProgress&)>& tell_;
  const Clock& clock_;
  std::atomic<int64_t> next_us_ = 0;
  std::mutex mutex_;  // one call at a time
};

}  // namespace overcap
