// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace overcap {

// attempt-N/next-task: one number that all agents of an array share, so that each task is taken exactly once.
class TaskCounter {
 public:
  static Result<TaskCounter> Open(const std::string& path);  // made, as 0, by whoever comes first
  TaskCounter(TaskCounter&& other) noexcept;
  TaskCounter& operator=(TaskCounter&&) = delete;
  ~TaskCounter();

  // The next position that nobody has taken. Never the same twice, whoever asks.
  int64_t Take();

 private:
  explicit TaskCounter(int64_t* number) : number_(number) {}
  int64_t* number_;  // shared mapping
};

}  // namespace overcap
