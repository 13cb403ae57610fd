// SPDX-License-Identifier: Apache-2.0
#include "snapshot/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace overcap {
namespace {

constexpr size_t kItemsPerThread = 32;  // fewer are done before a thread has started
constexpr size_t kMaxThreads = 4;       // the disk is the limit soon

size_t ThreadsFor(size_t count) {
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  return std::clamp<size_t>(count / kItemsPerThread, 1, std::min(cores, kMaxThreads));
}

}  // namespace

Result<void> ParallelFor(size_t count, const std::function<Result<void>(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> first;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      Result<void> result = work(i);
      if (result) continue;
      next = count;
      const std::lock_guard lock(mutex);
      if (!first) first = std::move(result).error();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < ThreadsFor(count); ++i) {
    try {
      threads.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // no more threads to be had; those there are do it all
    }
  }
  run();
  for (std::thread& thread : threads) thread.join();
  if (first) return Fail(std::move(*first));
  return {};
}

}  // namespace overcap
