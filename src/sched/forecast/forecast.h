// SPDX-License-Identifier: Apache-2.0
// When a job that waits starts, with how much certainty, and what would start sooner. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sched/forecast/alternatives.h"
#include "sched/forecast/start_replays.h"
#include "sched/forecast/start_times.h"

namespace overcap::forecast {

// The times are sorted by it.
StartTimes TimesOf(std::vector<int64_t>* starts);

struct Offer {
  Alternative instead;
  StartTimes start;
};

struct Forecast {
  StartTimes start;
  bool now = false;  // in every future it starts at once
  int replays = 0;
  std::vector<Offer> sooner;
};

// Calls work(i, worker) for every i below `count`, in any order, on several threads or on one; `worker` is
// below `workers` and names the thread.
struct Crew {
  int workers = 1;
  std::function<void(int count, const std::function<void(int, int)>& work)> run;
};
Crew OneThread();

struct ForecastOptions {
  uint64_t seed = 1;
  int replays = 200;
  int replays_each = 12;    // of an alternative
  uint64_t partitions = 0;  // that its user may use: what may be offered
};

// Long queues get fewer replays: so many that all of them together are bounded.
int ReplaysFor(const LiveQueue& queue, int wanted);

// The runs that run times are learned from: those that are over, and of those that go on the ones that began
// since the first of them did.
std::vector<PastRun> WithRunning(std::vector<PastRun> past, const LiveQueue& queue);

// The same for the same input, whatever the crew.
Forecast Foresee(const LiveQueue& queue, const RunTimes& times, const ForecastOptions& options,
                 const Crew& crew);

}  // namespace overcap::forecast
