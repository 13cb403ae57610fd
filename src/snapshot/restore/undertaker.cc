// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/undertaker.h"

#include <chrono>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace overcap {

void Undertaker::Remove(int folder_fd, std::string name) {
  {
    const std::lock_guard lock(mutex_);
    if (threads_.size() < kThreads && waiting_.size() >= threads_.size()) {
      try {
        threads_.emplace_back([this] { Work(); });
      } catch (const std::system_error&) {
        // No more threads to be had; those there are do it, or the caller.
      }
    }
    if (!threads_.empty() && waiting_.size() < kWaitingMost) {
      waiting_.push_back({folder_fd, std::move(name)});
      changed_.notify_one();
      return;
    }
  }
  (void)unlinkat(folder_fd, name.c_str(), 0);
}

void Undertaker::Wait() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    threads.swap(threads_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard lock(mutex_);
  ends_ = false;
}

void Undertaker::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    while (waiting_.empty() && !ends_) changed_.wait_for(lock, std::chrono::seconds(1));
    if (waiting_.empty()) return;
    const Body body = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    (void)unlinkat(body.folder_fd, body.name.c_str(), 0);
    lock.lock();
  }
}

}  // namespace overcap
