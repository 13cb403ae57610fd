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
constexpr std::chrono::seconds kBeatTime{5};
constexpr size_t kMostText =
    900;  // srun carries 1,024 bytes in one piece, and lines of nodes must stay whole

}  // namespace

void KeeperVoice::Say(std::string_view word, std::string_view text) {
  const std::lock_guard lock(mutex_);
  said_us_ = PosixClock().MonotonicUs();
  Write(word, text);
}

void KeeperVoice::Write(std::string_view word, std::string_view text) {
  const std::string said = ToUtf8(text.size() > kMostText ? StrCat(text.substr(0, kMostText), " ...") : text);
  const std::string line = StrCat(word, said.empty() ? "" : " ", said, "\n");
  (void)WriteAll(STDOUT_FILENO, line);  // an agent that is gone hears nothing
}

void KeeperVoice::Alive() {
  {
    const std::lock_guard lock(mutex_);
    if (PosixClock().MonotonicUs() - said_us_ < kQuietUs) return;
  }
  Say("alive");
}

void KeeperVoice::Listen(const std::string& node) {
  std::thread([this, node] {
    char buffer[256];
    for (;;) {
      const ssize_t size = read(STDIN_FILENO, buffer, sizeof buffer);
      if (size == 0 || (size < 0 && errno != EINTR)) break;
    }
    {
      const std::lock_guard lock(end_mutex_);
      ended_ = true;
      end_.notify_all();
    }
    for (; !node.empty(); std::this_thread::sleep_for(kBeatTime)) {
      const std::lock_guard lock(mutex_);
      Write("beat", node);
    }
  }).detach();
}

void KeeperVoice::Wait(std::chrono::milliseconds time) {
  std::unique_lock lock(end_mutex_);
  end_.wait_for(lock, time, [this] { return ended_.load(); });
}

}  // namespace overcap
