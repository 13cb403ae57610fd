// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/watched_rank.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

#include "sys/pidfd_info.h"

namespace overcap {
namespace {

constexpr int64_t kStatusWaitUs = 1'000'000;  // for its parent to take the exit status
constexpr int64_t kStatusStepUs = 2'000;
constexpr int64_t kLookStepUs = 50'000;  // without a descriptor of the process

}  // namespace

WatchedRank::WatchedRank(int rank, pid_t pid, Fd out, Fd err)
    : rank_(rank), pid_(pid), pipes_{std::move(out), std::move(err)} {
  if (auto pidfd = OpenPidfd(pid)) {
    pidfd_ = std::move(*pidfd);
  } else {
    identity_ = Identify(pid);
  }
  for (const Fd& pipe : pipes_) (void)fcntl(pipe.Get(), F_SETFL, O_NONBLOCK);
}

void WatchedRank::AddOutputFds(std::vector<pollfd>* fds) const {
  for (const Fd& pipe : pipes_) {
    if (pipe) fds->push_back({pipe.Get(), POLLIN, 0});
  }
}

int64_t WatchedRank::NextUs(int64_t now_us) const {
  if (!alive_) return std::numeric_limits<int64_t>::max();
  if (died_us_ != 0) return now_us + kStatusStepUs;
  return pidfd_ ? std::numeric_limits<int64_t>::max() : now_us + kLookStepUs;
}

bool WatchedRank::HasDied() const {
  if (!pidfd_) return !identity_ || !IsAlive(*identity_);
  pollfd entry{pidfd_.Get(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

std::optional<WatchedRank::End> WatchedRank::CheckEnd(int64_t now_us) {
  if (!alive_ || (died_us_ == 0 && !HasDied())) return std::nullopt;
  if (died_us_ == 0) died_us_ = now_us;
  auto end = pidfd_ ? EndByPidfd(pidfd_) : Result<ProcessEnd>(Fail(ErrorCode::kNotFound, ""));
  const bool will_tell = !end && end.error().code == ErrorCode::kUnavailable;
  if (!end) end = EndOfZombie(pid_);
  if (!end && will_tell && now_us < died_us_ + kStatusWaitUs) return std::nullopt;
  alive_ = false;
  pidfd_.Reset();
  return end ? End(*end) : End();
}

size_t WatchedRank::Read(int stream, std::string* buffer) {
  Fd& pipe = pipes_[stream - 1];
  if (!pipe) return 0;
  ssize_t n;
  do {
    n = read(pipe.Get(), buffer->data(), buffer->size());
  } while (n < 0 && errno == EINTR);
  if (n == 0 || (n < 0 && errno != EAGAIN)) pipe.Reset();
  return n > 0 ? static_cast<size_t>(n) : 0;
}

std::optional<pid_t> WatchedRank::Group() const {
  return alive_ && getpgid(pid_) == pid_ ? std::optional(pid_) : std::nullopt;
}

void WatchedRank::Signal(int sig) const {
  if (!alive_ || HasDied()) return;
  const auto group = Group();
  kill(group ? -*group : pid_, sig);
}

}  // namespace overcap
