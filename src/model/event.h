// SPDX-License-Identifier: Apache-2.0
// What happens to a job, as recorded in the journal and in events.jsonl (docs/formats/journal.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"
#include "model/job_state.h"
#include "model/machine.h"

namespace overcap {

enum class EventKind {
  kJournal,    // first record: the version
  kSubmitted,  // spec
  kHeld,
  kReleased,
  kStarted,    // attempt, slot, gpus, cpus, boot_id, host, retry_tasks, partition
  kCancel,     // reason
  kSlotEnded,  // attempt, slot, ending, tasks
  kRequeued,   // reason
  kEnded,      // ending
  kRemoved,
  kMachine,  // machine; no id
  kPreempt,  // attempt, slot, by, stop_us
  kState,    // after compaction: everything that is not in the spec; gpus: those of the last attempt
};
std::string_view EventKindName(EventKind kind);

// Results of the tasks that one agent of an array ran.
struct TaskResults {
  int succeeded = 0;
  std::vector<std::pair<int, int>> failed;  // index, exit status
  std::vector<int> lost;                    // begun when the agent was killed
  bool operator==(const TaskResults&) const = default;
};

// What kState carries beside `ending`, `reason` and `tasks`.
struct JobProgress {
  int attempt = 0;
  int restarts = 0;
  int losses = 0;  // attempts that ended because their agent was killed
  int next_slot = 0;
  bool cancel_requested = false;
  int preemptions = 0;       // how often a slot of it was told to go
  std::string preempted_by;  // the last job for whom; "": never
  std::string partition;     // in which it was started last; "": there was no policy
  int64_t started_us = 0;
  int64_t ended_us = 0;
  bool operator==(const JobProgress&) const = default;
};

struct Event {
  EventKind kind = EventKind::kSubmitted;
  int64_t time_us = 0;
  std::string id;
  int version = 1;  // kJournal
  JobSpec spec;     // kSubmitted
  int attempt = 0;
  int slot = 0;
  int nodes = 1;  // an elastic job's agents
  std::vector<int> gpus;
  std::vector<int> cpus;
  std::string boot_id;  // of the machine when the slot was started
  std::string host;     // kStarted: the machine itself (OwnHost()); "": written before there was this
  std::vector<int> retry_tasks;  // arrays: tasks to be run again, before new ones are taken; also of kState
  std::string partition;         // kStarted; "": there is no policy
  std::string by;                // kPreempt: the job that gets the room
  int64_t stop_us = 0;           // kPreempt: when its agent gets TERM
  Ending ending;                 // kSlotEnded, kEnded, kState (its state is the job's)
  std::string reason;
  TaskResults tasks;
  JobProgress progress;
  Machine machine;  // kMachine
  bool operator==(const Event&) const = default;
};

// One JSON object on one line, without the newline; `with_id` false: as events.jsonl has it.
std::string EventToJson(const Event& event, bool with_id = true);
// kCorrupt for what is no event, and for a kind that this program does not know.
Result<Event> EventFromJson(std::string_view json);

}  // namespace overcap
