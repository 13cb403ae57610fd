// SPDX-License-Identifier: Apache-2.0
// When a Slurm allocation ends: its limit may be changed while it runs, and older versions say nothing of it
// in the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "sys/variables.h"

namespace overcap {

// How long to wait before Slurm is asked again: the nearer the end is, the less. 0 for `end_us`: not known.
int64_t PauseBeforeNextLookUs(int64_t end_us, int64_t now_us);

// Asks Slurm now and then, in a thread of its own, which waits for an answer no longer than 20 seconds.
// Whoever ends it does not wait for that.
class AllocationEndWatch {
 public:
  // Of the job that SLURM_JOB_ID names; without one it never asks. `known_us`: what the environment says, or
  // 0.
  AllocationEndWatch(Variables variables, int64_t known_us);
  ~AllocationEndWatch();
  AllocationEndWatch(const AllocationEndWatch&) = delete;
  AllocationEndWatch& operator=(const AllocationEndWatch&) = delete;

  // Asks no more; true when the last question was answered within that time.
  bool Stop(std::chrono::seconds patience);
  int64_t end_us() const;  // wall time; 0: not known, or there is none
  int PollFd() const;      // readable when it has changed
  void Taken() const;      // not any more

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread has it, too
};

}  // namespace overcap
