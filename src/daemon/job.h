// SPDX-License-Identifier: Apache-2.0
// A job as the engine holds it in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/agent_report.h"
#include "model/event.h"
#include "model/job_record.h"
#include "model/job_spec.h"
#include "sys/proc_table.h"

namespace overcap {

// One allocation in use: an attempt of a plain job, or one of the lanes of an array.
struct Slot {
  int attempt = 1;
  int slot = 0;
  std::vector<int> gpus;
  std::vector<int> cpus;
  std::string boot_id;           // of the machine when it was started
  std::vector<int> retry_tasks;  // arrays: given to it to be run again
  int64_t started_us = 0;
  std::string partition;  // in which it runs; "": it was started without a policy
  // It was told to give way: to whom, and when its agent gets TERM.
  struct Preemption {
    std::string by;
    int64_t told_us = 0, stop_us = 0;
  };
  std::optional<Preemption> preemption;
  std::optional<ProcessIdentity> agent;  // not known between the journal's record and the start
  int nodes = 1;                         // an elastic job's agents
  int64_t time_seconds = 0;              // the limit with which this engine started it; 0: not known
  std::string host;                      // on which it was started; "": not recorded
  // On another host than the engine: its agent cannot be seen from here and its GPUs are not this machine's.
  // Set by the engine, not by the journal.
  bool elsewhere = false;
};

// What only arrays have.
struct ArrayProgress {
  TaskResults done;              // of slots that have ended
  std::vector<int> retry;        // tasks whose agent was killed, to be run again
  std::optional<Ending> broken;  // an agent could not run at all: no more lanes
  bool drained = false;          // nobody is left to take from the counter
};

struct Job {
  uint64_t key = 0;  // order of submission
  JobSpec spec;
  JobState state = JobState::kQueued;
  Ending ending;  // once final; its reason also while it waits
  JobProgress progress;
  Ending last_attempt;  // how the slot that ended last did; decides what comes next
  int64_t last_attempt_us = 0;
  std::vector<Slot> slots;
  std::vector<int> last_gpus;  // of the last attempt; arrays: of all lanes so far, ascending
  bool spec_written = false;   // spec.json, by this process
  int64_t spec_bytes = 0;      // SpecBytes() of its spec
  std::unique_ptr<ArrayProgress> array;

  bool ended() const { return IsFinal(state); }
  const Slot* SlotElsewhere() const {
    for (const Slot& slot : slots) {
      if (slot.elsewhere) return &slot;
    }
    return nullptr;
  }
  bool is_array() const { return !spec.array.empty(); }
  Slot* FindSlot(int attempt, int slot) {
    for (Slot& candidate : slots) {
      if (candidate.attempt == attempt && candidate.slot == slot) return &candidate;
    }
    return nullptr;
  }
};

}  // namespace overcap
