// SPDX-License-Identifier: Apache-2.0
#include "control/forecast_crew.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace overcap {

forecast::Crew ThreadCrew(int threads) {
  const int workers = std::max(1, threads);
  return {workers, [workers](int count, const std::function<void(int, int)>& work) {
            std::atomic<int> next = 0;
            const auto take = [&](int worker) {
              for (int i = next++; i < count; i = next++) work(i, worker);
            };
            std::vector<std::jthread> others;
            for (int worker = 1; worker < std::min(workers, count); ++worker)
              others.emplace_back(take, worker);
            take(0);
          }};
}

forecast::Crew CrewOfThisMachine() {
  return ThreadCrew(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U)));
}

}  // namespace overcap
