// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace overcap {

// Removes files that were replaced while others are made: a file system may wait for the disk in that, which
// costs time but no work. May be used from several threads.
class Undertaker {
 public:
  Undertaker() = default;
  ~Undertaker() { Wait(); }
  Undertaker(const Undertaker&) = delete;
  Undertaker& operator=(const Undertaker&) = delete;

  // At once when many wait already: their space is needed. `folder_fd` stays open until Wait has returned.
  void Remove(int folder_fd, std::string name);
  // Until all are gone.
  void Wait();

 private:
  static constexpr size_t kWaitingMost = 64, kThreads = 4;

  struct Body {
    int folder_fd;
    std::string name;
  };

  void Work();

  std::mutex mutex_;  // guards all of it
  std::condition_variable changed_;
  std::deque<Body> waiting_;
  std::vector<std::thread> threads_;
  bool ends_ = false;
};

}  // namespace overcap
