// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>

namespace overcap {

// What a keeper says to its agent, and when that has no more use for it. Any number of threads.
class KeeperVoice {
 public:
  void Say(std::string_view word, std::string_view text = {});
  // At most one line in some seconds.
  void Alive();

  // From now on the end of standard input is waited for, beside. The object must live as long as the process.
  // With a node's name it gives signs of life after that end.
  void Listen(const std::string& node);
  const std::atomic<bool>& ended() const { return ended_; }
  // Until it ends, at most so long.
  void Wait(std::chrono::milliseconds time);

 private:
  void Write(std::string_view word, std::string_view text);  // with the mutex held

  std::mutex mutex_;  // guards said_us_, and what is written
  int64_t said_us_ = 0;
  std::atomic<bool> ended_{false};
  std::mutex end_mutex_;  // guards the change of ended_
  std::condition_variable end_;
};

}  // namespace overcap
