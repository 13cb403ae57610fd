// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace overcap {

// Threads that do one thing with each of what is added; the destructor waits until all is done. Where none
// can be started, who adds does it.
template <typename Item>
class WorkQueue {
 public:
  WorkQueue(int threads, std::function<void(const Item&)> act, size_t most_waiting = 1024)
      : act_(std::move(act)), most_(most_waiting) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {  // so many as one may have
    }
  }
  WorkQueue(const WorkQueue&) = delete;
  ~WorkQueue() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    more_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Waits while many are waiting already.
  void Add(Item item) {
    if (threads_.empty()) return act_(item);
    {
      std::unique_lock lock(mutex_);
      less_.wait(lock, [&] { return items_.size() < most_; });
      items_.push_back(std::move(item));
    }
    more_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      more_.wait(lock, [&] { return closed_ || !items_.empty(); });
      if (items_.empty()) return;
      const Item item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      less_.notify_one();
      act_(item);
      lock.lock();
    }
  }

  const std::function<void(const Item&)> act_;
  const size_t most_;
  std::mutex mutex_;  // guards all below
  std::condition_variable more_, less_;
  std::deque<Item> items_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace overcap
