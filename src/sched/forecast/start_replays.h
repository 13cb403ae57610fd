// SPDX-License-Identifier: Apache-2.0
// When a job that waits starts, in as many futures as are asked for: each is the live queue sent through the
// scheduler, with run times drawn by chance. The same seed and number give the same future, whoever computes
// it and whatever the job asks for in it: so that two askings can be compared. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "sched/forecast/live_queue.h"
#include "sched/forecast/run_times.h"
#include "sched/pooled/pooled_scheduler.h"

namespace overcap::forecast {

class StartReplays {
 public:
  // Both must outlive it.
  StartReplays(const LiveQueue& queue, const RunTimes& times, uint64_t seed);

  // What one replay works in; one for each thread, used again and again.
  struct Room {
    std::optional<pooled::PooledScheduler> scheduler;
    struct Event {
      int64_t at_s = 0;
      uint32_t job = 0, run = 0;
      pooled::JobRef ref = 0;
      bool stop = false;                          // its grace is over
      bool operator<(const Event& other) const {  // the earliest stands at the front of a heap
        return std::tie(at_s, job, stop) > std::tie(other.at_s, other.job, other.stop);
      }
    };
    std::vector<Event> events;
    std::vector<uint32_t> run;    // by job: how often it was stopped
    std::vector<int64_t> left_s;  // by job: of its work, from its start; 0: not drawn yet
    std::vector<int64_t> began_s;
  };

  // When the target, asking for what `asks` says, starts in future number `future`; kNever: not before
  // `until_s`, or nobody knows. Two threads may call it at once, each with a room of its own.
  int64_t Start(const pooled::PoolJob& asks, uint64_t future, int64_t until_s, Room* room) const;

  const LiveQueue& queue() const { return queue_; }
  // Ends that are no further apart than this are looked at together, however early they come.
  void SetGrain(int64_t grain_s) { grain_s_ = grain_s; }

 private:
  uint64_t ChanceOf(size_t job, uint64_t future) const;
  void Begin(uint64_t future, Room* room) const;
  void Happen(const Room::Event& event, int64_t now_s, Room* room) const;

  const LiveQueue& queue_;
  const uint64_t seed_;
  int64_t grain_s_ = 0;
  pooled::PooledScheduler begin_;     // all but the target
  std::vector<RunTime> times_;        // by job
  std::vector<uint32_t> user_of_;     // by job
  std::vector<pooled::JobRef> runs_;  // by job: of those that run
};

}  // namespace overcap::forecast
