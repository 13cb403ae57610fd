// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_waiter.h"

#include <algorithm>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clusters/cluster_view.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kQueueUs = kWatchAgeUs;  // between two readings of the queue
constexpr int64_t kPauseUs = 40'000, kNetworkPauseUs = 400'000, kLongestPauseUs = 5 * kSecond;
constexpr int64_t kFirstLookUs = 200'000, kLongestLookUs = 5 * kSecond;
constexpr size_t kMostLooks = 4;  // jobs at which the controller is asked to look by itself
constexpr int64_t kShare = 9;     // looking takes a tenth of a processor's time at most

bool IsNetwork(const std::string& path) {
  struct statfs info {};
  if (statfs(path.c_str(), &info) != 0) return true;
  switch (static_cast<unsigned>(info.f_type)) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool JobWaiter::Reached(const JobRecord& record) const {
  if (IsFinal(record.state)) return true;
  return until_ == WaitUntil::kStarted && record.state == JobState::kRunning;
}

int64_t JobWaiter::PauseUs() const {
  return std::min(kLongestPauseUs, std::max(network_ ? kNetworkPauseUs : kPauseUs, kShare * glance_us_));
}

Result<bool> JobWaiter::Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) {
  until_ = until;
  left_ = ids;
  const Clock& clock = context_->clock();
  const int64_t began_us = clock.MonotonicUs();
  const int64_t most_s = INT64_MAX / kSecond / 2;
  const int64_t deadline_us = began_us + std::min(timeout_seconds, most_s) * kSecond;
  network_ = IsNetwork(context_->settings().root);
  OC_TRY_VOID(ReadQueue());
  int64_t next_queue_us = began_us + kQueueUs;
  while (!left_.empty()) {
    const int64_t now_us = clock.MonotonicUs();
    if (now_us >= deadline_us) return false;
    usleep(static_cast<useconds_t>(std::min(PauseUs(), deadline_us - now_us)));
    OC_TRY_VOID(GlanceAtFolders());
    OC_TRY_VOID(LookAtSilent());
    if (left_.empty() || clock.MonotonicUs() < next_queue_us) continue;
    OC_TRY_VOID(ReadQueue());
    next_queue_us = clock.MonotonicUs() + kQueueUs;
  }
  return true;
}

Result<void> JobWaiter::ReadQueue() {
  OC_TRY(records, jobs_->Query(left_, kQueueUs));
  left_.clear();
  for (const JobRecord& record : records) {
    if (!Reached(record)) left_.push_back(record.spec.id);
  }
  return {};
}

Result<void> JobWaiter::GlanceAtFolders() {
  const int64_t began_us = context_->clock().MonotonicUs();
  std::vector<std::string> left;
  for (const std::string& id : left_) {
    if (IsSlurmNumber(id)) {
      left.push_back(id);
      continue;
    }
    OC_TRY(record, jobs_->Glance(id));
    if (!Reached(record)) left.push_back(id);
  }
  left_ = std::move(left);
  glance_us_ = context_->clock().MonotonicUs() - began_us;
  return {};
}

// What was cancelled before it ran, and what Overcap did not submit, has no agent that would tell; the queue
// is read too rarely for somebody who has just cancelled it. In the long run the queue must do.
Result<void> JobWaiter::LookAtSilent() {
  const int64_t now_us = context_->clock().MonotonicUs();
  if (now_us < next_look_us_ || look_pause_us_ == kLongestLookUs) return {};
  look_pause_us_ = std::clamp(2 * look_pause_us_, kFirstLookUs, kLongestLookUs);
  next_look_us_ = now_us + look_pause_us_;
  std::vector<std::string> left;
  size_t looks = 0;
  for (const std::string& id : left_) {
    const bool silent = IsSlurmNumber(id) || jobs_->Folder(id).Cancel().has_value();
    if (!silent || looks++ >= kMostLooks) {
      left.push_back(id);
      continue;
    }
    const auto record = jobs_->LookAt(id);
    if (!record || !Reached(*record)) left.push_back(id);
  }
  left_ = std::move(left);
  return {};
}

}  // namespace overcap
