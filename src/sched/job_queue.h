// SPDX-License-Identifier: Apache-2.0
// The seam between an engine and who decides what starts: scheduler.h without a policy, the pooled scheduler
// with one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job_spec.h"
#include "sched/pool.h"

namespace overcap {

struct QueuedJob {
  uint64_t key = 0;  // the caller's name for the job
  uint64_t seq = 0;  // lower goes first; a requeued job keeps its own
  int priority = 0;  // higher goes first
  // time_seconds is the limit of one allocation: 0 for the lanes of an array, which take task after task.
  Resources resources;
  int slots_wanted = 1;  // allocations it may take; arrays: many
  int first_slot = 0;    // number of its next allocation; arrays that go on: above all that were ever used
};

// An allocation that was there before this scheduler.
struct Running {
  uint64_t key = 0;
  uint64_t seq = 0;  // 0: as the key
  int slot = 0;
  int priority = 0;
  Resources resources;
  Grant allocation;
  int64_t started_us = 0;
  int next_slot = 0;  // arrays: numbers below it were used before, also by lanes that have ended
};

struct Start {
  uint64_t key = 0;
  int slot = 0;
  Grant allocation;
  // With a policy: where it starts, and what holds for it there when it did not say it; 0: as it said.
  std::string partition = {};
  int64_t time_seconds = 0, memory_mb = 0;
  bool operator==(const Start&) const = default;
};

// An allocation that shall be given back.
struct Preempt {
  uint64_t key = 0;
  int slot = 0;
  uint64_t by = 0;      // the job that gets the room
  int64_t grace_s = 0;  // between the warning and the end
  bool operator==(const Preempt&) const = default;
};

class JobQueue {
 public:
  virtual ~JobQueue() = default;

  // A job that is known already (by Adopt, or still queued) gets the new values.
  virtual void Enqueue(const QueuedJob& job) = 0;
  // Takes it out of the queue and, when its last allocation is released, forgets it.
  virtual void Remove(uint64_t key) = 0;
  // How many more allocations the job may take from now on; it needs no new Enqueue(). Unknown keys are
  // ignored.
  virtual void UpdateSlots(uint64_t key, int slots_wanted) = 0;
  virtual void Adopt(const Running& running) = 0;
  // An allocation has ended; fine when there is none.
  virtual void Release(uint64_t key, int slot) = 0;
  // A start that could not be made: gives the allocation back, the job is queued at its old place.
  virtual void Undo(const Start& start) = 0;

  // What starts now. The queue counts it as started.
  virtual std::vector<Start> Pass(int64_t now_us) = 0;
  // Who was told to go in the last Pass(), once.
  virtual std::vector<Preempt> TakePreempts() { return {}; }
  // When a Pass() may find something though nothing happens; 0: never.
  virtual int64_t WakeAtUs() const { return 0; }

  // Why a job that is queued waits; empty when it is not queued. For people.
  virtual std::string Explain(uint64_t key, int64_t now_us) const = 0;
  virtual int FreeGpus() const = 0;
};

}  // namespace overcap
