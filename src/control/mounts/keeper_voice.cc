// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/keeper_voice.h"

#include <cerrno>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kQuietUs = 5'000'000;

}  // namespace

void KeeperVoice::Say(std::string_view word, std::string_view text) {
  const std::string line = StrCat(word, text.empty() ? "" : " ", ToUtf8(text), "\n");
  const std::lock_guard lock(mutex_);
  said_us_ = PosixClock().MonotonicUs();
  (void)WriteAll(STDOUT_FILENO, line);  // an agent that is gone hears nothing
}

void KeeperVoice::Alive() {
  {
    const std::lock_guard lock(mutex_);
    if (PosixClock().MonotonicUs() - said_us_ < kQuietUs) return;
  }
  Say("alive");
}

void KeeperVoice::Listen() {
  std::thread([this] {
    char buffer[256];
    for (;;) {
      const ssize_t size = read(STDIN_FILENO, buffer, sizeof buffer);
      if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
    const std::lock_guard lock(end_mutex_);
    ended_ = true;
    end_.notify_all();
  }).detach();
}

void KeeperVoice::Wait(std::chrono::milliseconds time) {
  std::unique_lock lock(end_mutex_);
  end_.wait_for(lock, time, [this] { return ended_.load(); });
}

}  // namespace overcap
