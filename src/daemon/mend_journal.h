// SPDX-License-Identifier: Apache-2.0
// Decides what the new journal contains after the old one was damaged or lost (docs/formats/journal.md,
// "Recovery"). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/journal.h"
#include "model/event.h"
#include "model/job_spec.h"

namespace overcap {

// One slot that an agent has claimed, or might still claim.
struct SlotTrace {
  int attempt = 0;
  int slot = 0;
  std::string boot_id, host;  // of the agent's claim; "": there is none, or it cannot be read
  bool ended = false;         // its report has an end
  int64_t started_us = 0;     // as reported; 0: not known
};

// What the folder of a job says about it. Where one engine serves many users the owner can write the folder,
// so its reader has left out what only the engine may say.
struct JobTrace {
  std::optional<JobSpec> spec;   // spec.json
  std::vector<Event> events;     // events.jsonl, with the job's id
  std::vector<SlotTrace> slots;  // ascending
  // Whether the folder shows every start: the machine has not gone down since the last engine.
  bool complete = false;
};

struct MendedJournal {
  std::vector<Event> events;
  std::vector<std::string> notes;  // one line for each thing that was left out, filled in or decided
  bool changed = false;            // false: the journal is whole, there is nothing to mend
};

// `folders`: ids of the jobs that have one. `trace_of`: what the folder of a job says; nullopt: there is
// none, or it is not believed. `now_us`: the time of events that are decided here.
MendedJournal MendJournal(const SalvagedJournal& salvaged, const std::vector<std::string>& folders,
                          const std::function<std::optional<JobTrace>(const std::string& id)>& trace_of,
                          int64_t now_us);

}  // namespace overcap
