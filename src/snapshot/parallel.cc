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

constexpr size_t kMaxThreads = 4;  // the disk is the limit soon

size_t ThreadsFor(size_t count, const ParallelGrain& grain) {
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  return std::clamp<size_t>(count / grain.items_per_thread, 1, std::min(cores, kMaxThreads));
}

}  // namespace

Result<void> ParallelFor(size_t count, const std::function<Result<void>(size_t)>& work,
                         const ParallelGrain& grain) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> first;
  const auto give_up = [&](Error error) {
    next = count;
    const std::lock_guard lock(mutex);
    if (!first) first = std::move(error);
  };
  const auto run = [&] {
    for (size_t begin = next.fetch_add(grain.run); begin < count; begin = next.fetch_add(grain.run)) {
      for (size_t i = begin; i < std::min(begin + grain.run, count); ++i) {
        Result<void> result = work(i);
        if (!result) return give_up(std::move(result).error());
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < ThreadsFor(count, grain); ++i) {
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
