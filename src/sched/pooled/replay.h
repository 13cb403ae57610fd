// SPDX-License-Identifier: Apache-2.0
// A history of jobs sent through the scheduler, event by event.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/policy/policy.h"
#include "sched/pooled/pooled_scheduler.h"
#include "sched/trace/trace.h"

namespace overcap::pooled {

struct ReplayOptions {
  double scale = 1;   // of the pool, see RulesOf()
  uint64_t seed = 1;  // of what is chosen at random: the labs of a trace that names none of the policy's
  int64_t checkpoint_s = 1800;  // jobs save their work so often; 0: never
  std::string partitions;       // of all jobs, "short,overcap"; "": those of the trace, else by time limit
  // Called after every pass; a text ends the replay with that error.
  std::function<std::string(const PooledScheduler&, const std::vector<Action>&, int64_t now_s)> watch;
};

// What became of one job of the trace.
struct ReplayedJob {
  int32_t lab = -1, user = -1;  // in Replayed::labs and users; lab -1: it was skipped
  int32_t gpus = 0;             // as they were given
  int32_t preemptions = 0;
  int64_t first_start_s = -1, end_s = -1;  // -1: it never did
  float lost_gpu_s = 0, overcap_gpu_s = 0, used_gpu_s = 0;
};

// GPUs in use over time, in steps of the same length: the mean of each step.
struct UseOverTime {
  int64_t from_s = 0, step_s = 1;
  std::vector<std::vector<double>> in_cap, overcap;  // by lab and step
};

struct Replayed {
  Rules rules;
  std::vector<std::string> users;
  std::vector<ReplayedJob> jobs;  // as in the trace
  TraceSkips skips;               // beside those of the reader
  std::vector<std::string> notes;
  UseOverTime use;
  int64_t from_s = 0, until_s = 0;  // the first submit, the last end
  int64_t starts = 0, preemptions = 0, passes = 0, never_started = 0;
  int pool_gpus = 0;
};

// kUsage when a partition of the options does not exist; kInternal with what `watch` said.
Result<Replayed> Replay(const Policy& policy, const Trace& trace, const ReplayOptions& options);

}  // namespace overcap::pooled
