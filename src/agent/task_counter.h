// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace overcap {

// attempt-N/next-task: numbers that all agents of an array share, so that each task is taken exactly once.
class TaskCounter {
 public:
  static Result<TaskCounter> Open(const std::string& path);  // the first agent makes it, as zeros
  TaskCounter(TaskCounter&& other) noexcept;
  TaskCounter& operator=(TaskCounter&&) = delete;
  ~TaskCounter();

  // The next position that no agent has taken. Never the same twice.
  int64_t Take();
  // Makes it durable that the task at this position may have begun. One sync serves many positions: after a
  // power cut those of them that are in no report count as lost.
  void MayBegin(int64_t position);

 private:
  struct Numbers {
    int64_t next = 0;
    int64_t may_have_begun = 0;  // all positions below it
    int64_t synced = 0;          // the highest `may_have_begun` that is on the disk
  };
  explicit TaskCounter(Numbers* numbers) : numbers_(numbers) {}
  Numbers* numbers_;  // shared mapping
};

}  // namespace overcap
