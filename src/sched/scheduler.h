// SPDX-License-Identifier: Apache-2.0
// Who starts next, and where. Pure: no clock, file or thread; the same calls give the same answers. The order
// is by priority, then first in first out, with EASY backfill (reservation.h).
//
// Jobs of one priority and one shape stand in one line, and if its first does not fit none of the line does:
// a pass costs by the number of different shapes, not of jobs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"
#include "model/machine.h"
#include "sched/pool.h"
#include "sched/reservation.h"

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
  bool operator==(const Start&) const = default;
};

class Scheduler {
 public:
  // The machines; what runs stays where it is, as far as that is still there.
  void SetNodes(std::vector<Machine> nodes);

  // A job that is known already (by Adopt, or still queued) gets the new values.
  void Enqueue(const QueuedJob& job);
  // Takes it out of the queue and, when its last allocation is released, forgets it.
  void Remove(uint64_t key);
  // How many more allocations the job may take from now on; it needs no new Enqueue(). Unknown keys are
  // ignored.
  void UpdateSlots(uint64_t key, int slots_wanted);
  void Adopt(const Running& running);
  // An allocation has ended; fine when there is none.
  void Release(uint64_t key, int slot);
  // A start that could not be made: gives the allocation back, the job is queued at its old place.
  void Undo(const Start& start);

  // What starts now. The scheduler counts it as started.
  std::vector<Start> Pass(int64_t now_us);

  // Could it ever run here? kUsage: "asks for 8 GPUs, this machine has 4".
  Result<void> Fits(const Resources& resources) const;
  // Why a job that is queued waits; empty when it is not queued. For people.
  std::string Explain(uint64_t key, int64_t now_us) const;

  size_t queued() const { return queued_; }
  size_t running() const { return uses_.size(); }
  std::vector<int> FreeGpuIndices() const { return pool_.FreeGpuIndices(0); }
  int FreeGpus() const { return pool_.machines().empty() ? 0 : static_cast<int>(FreeGpuIndices().size()); }
  int FreeCpus() const { return pool_.machines().empty() ? 0 : pool_.FreeCpus(0); }

 private:
  using ShapeKey = std::tuple<int, int, int, int, int64_t, int64_t, std::string>;

  struct KnownShape {
    Shape shape;
    uint64_t id = 0;       // order of appearance
    size_t users = 0;      // jobs and allocations
    uint64_t blocked = 0;  // the round in which it was found not to fit
  };
  struct Job {
    uint64_t seq = 0;
    KnownShape* shape = nullptr;
    int priority = 0;
    int wanted = 0;
    int next_slot = 0;
    int in_use = 0;
    bool removed = false;
  };
  // The jobs of one priority and shape, oldest first, as (seq, key).
  struct Line {
    KnownShape* shape = nullptr;
    int priority = 0;
    std::set<std::pair<uint64_t, uint64_t>> jobs;
  };
  struct Held {
    KnownShape* shape = nullptr;
    Grant allocation;
    int64_t started_us = 0;
  };

  // The policy: does the first job of line `a` go before that of `b`?
  static bool Precedes(const Line& a, const Line& b);

  KnownShape* Acquire(const Resources& resources);
  void Drop(KnownShape* shape);
  void PutInLine(uint64_t key, const Job& job);
  void TakeOutOfLine(uint64_t key, const Job& job);
  void SetWanted(uint64_t key, Job* job, int wanted);
  void Round(int64_t now_us, std::vector<Start>* starts);
  Start Begin(uint64_t key, Grant allocation, int64_t now_us);
  std::optional<Reservation> ReserveFor(const KnownShape& shape, int64_t now_us) const;
  std::string Missing(const Shape& shape) const;
  int JobsAhead(const Job& job, uint64_t key, int stop_at, bool* higher) const;

  Pool pool_;
  std::map<ShapeKey, std::unique_ptr<KnownShape>> shapes_;
  std::unordered_map<uint64_t, Job> jobs_;
  std::map<std::pair<int, uint64_t>, Line> lines_;  // by (-priority, shape id)
  std::map<std::pair<uint64_t, int>, Held> uses_;   // by (key, slot)
  size_t queued_ = 0;
  uint64_t next_shape_id_ = 1;
  uint64_t round_ = 0;
  bool changed_ = true;  // since the last pass; time alone never lets anything start
};

}  // namespace overcap
