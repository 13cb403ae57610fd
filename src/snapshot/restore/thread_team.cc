// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/thread_team.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace overcap {

int TeamSize(int wanted) {
  if (wanted > 0) return std::min(wanted, 64);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 8);
}

void RunTeam(int threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // no more threads to be had; those there are do it all
    }
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace overcap
