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
#include "sched/job_queue.h"
#include "sched/pool.h"
#include "sched/reservation.h"

namespace overcap {

class Scheduler : public JobQueue {
 public:
  // The machines; what runs stays where it is, as far as that is still there.
  void SetNodes(std::vector<Machine> nodes);

  void Enqueue(const QueuedJob& job) override;
  void Remove(uint64_t key) override;
  void UpdateSlots(uint64_t key, int slots_wanted) override;
  void Adopt(const Running& running) override;
  void Release(uint64_t key, int slot) override;
  void Undo(const Start& start) override;
  std::vector<Start> Pass(int64_t now_us) override;

  // Could it ever run here? kUsage: "asks for 8 GPUs, this machine has 4".
  Result<void> Fits(const Resources& resources) const;
  std::string Explain(uint64_t key, int64_t now_us) const override;

  size_t queued() const { return queued_; }
  size_t running() const { return uses_.size(); }
  std::vector<int> FreeGpuIndices() const { return pool_.FreeGpuIndices(0); }
  int FreeGpus() const override {
    return pool_.machines().empty() ? 0 : static_cast<int>(FreeGpuIndices().size());
  }
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
