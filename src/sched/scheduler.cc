// SPDX-License-Identifier: Apache-2.0
#include "sched/scheduler.h"

#include <algorithm>

#include "model/fits.h"

namespace overcap {

// ---- shapes: kept as long as a job or an allocation has them ----

Scheduler::KnownShape* Scheduler::Acquire(const Resources& resources) {
  const ShapeKey key{resources.nodes,     resources.max_nodes,    resources.gpus,    resources.cpus,
                     resources.mem_bytes, resources.time_seconds, resources.gpu_type};
  std::unique_ptr<KnownShape>& known = shapes_[key];
  if (!known) known.reset(new KnownShape{Shape(resources, pool_.machines()), next_shape_id_++});
  ++known->users;
  return known.get();
}

void Scheduler::Drop(KnownShape* shape) {
  if (--shape->users > 0) return;
  const Resources& resources = shape->shape.resources;
  shapes_.erase({resources.nodes, resources.max_nodes, resources.gpus, resources.cpus, resources.mem_bytes,
                 resources.time_seconds, resources.gpu_type});
}

void Scheduler::SetNodes(std::vector<Machine> nodes) {
  pool_ = Pool(std::move(nodes));
  for (auto& [key, known] : shapes_) known->shape = Shape(known->shape.resources, pool_.machines());
  for (const auto& [name, held] : uses_) pool_.Take(held.shape->shape, held.allocation);
  changed_ = true;
}

// ---- the queue ----

bool Scheduler::Precedes(const Line& a, const Line& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return *a.jobs.begin() < *b.jobs.begin();
}

void Scheduler::PutInLine(uint64_t key, const Job& job) {
  Line& line = lines_[{-job.priority, job.shape->id}];
  line.shape = job.shape;
  line.priority = job.priority;
  line.jobs.insert({job.seq, key});
  ++queued_;
}

void Scheduler::TakeOutOfLine(uint64_t key, const Job& job) {
  const auto line = lines_.find({-job.priority, job.shape->id});
  line->second.jobs.erase({job.seq, key});
  if (line->second.jobs.empty()) lines_.erase(line);
  --queued_;
}

void Scheduler::SetWanted(uint64_t key, Job* job, int wanted) {
  wanted = std::max(0, wanted);
  if (wanted > 0 && job->wanted == 0) PutInLine(key, *job);
  if (wanted == 0 && job->wanted > 0) TakeOutOfLine(key, *job);
  job->wanted = wanted;
  changed_ = true;
}

void Scheduler::Enqueue(const QueuedJob& queued) {
  KnownShape* shape = Acquire(queued.resources);
  Job& job = jobs_[queued.key];
  SetWanted(queued.key, &job, 0);
  if (job.shape != nullptr) Drop(job.shape);
  job.shape = shape;
  job.seq = queued.seq;
  job.priority = queued.priority;
  job.next_slot = std::max(job.next_slot, queued.first_slot);
  job.removed = false;
  SetWanted(queued.key, &job, queued.slots_wanted);
}

void Scheduler::Remove(uint64_t key) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  SetWanted(key, &found->second, 0);
  found->second.removed = true;
  if (found->second.in_use > 0) return;
  Drop(found->second.shape);
  jobs_.erase(found);
}

void Scheduler::UpdateSlots(uint64_t key, int slots_wanted) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.removed || found->second.wanted == slots_wanted) return;
  SetWanted(key, &found->second, slots_wanted);
}

// ---- allocations ----

void Scheduler::Adopt(const Running& running) {
  Release(running.key, running.slot);
  Job& job = jobs_[running.key];
  if (job.shape == nullptr) {
    job.shape = Acquire(running.resources);
    job.seq = running.seq == 0 ? running.key : running.seq;
    job.priority = running.priority;
  }
  ++job.in_use;
  job.next_slot = std::max({job.next_slot, running.next_slot, running.slot + 1});
  Held held{Acquire(running.resources), running.allocation, running.started_us};
  pool_.Take(held.shape->shape, held.allocation);
  uses_.emplace(std::pair(running.key, running.slot), std::move(held));
  changed_ = true;
}

void Scheduler::Release(uint64_t key, int slot) {
  const auto found = uses_.find({key, slot});
  if (found == uses_.end()) return;
  pool_.Give(found->second.shape->shape, found->second.allocation);
  Drop(found->second.shape);
  uses_.erase(found);
  changed_ = true;
  Job& job = jobs_.at(key);
  if (--job.in_use == 0 && job.removed) Remove(key);
}

Start Scheduler::Begin(uint64_t key, Grant allocation, int64_t now_us) {
  Job& job = jobs_.at(key);
  Start start{key, job.next_slot++, allocation};
  ++job.in_use;
  ++job.shape->users;
  pool_.Take(job.shape->shape, allocation);
  uses_.emplace(std::pair(key, start.slot), Held{job.shape, std::move(allocation), now_us});
  SetWanted(key, &job, job.wanted - 1);
  return start;
}

void Scheduler::Undo(const Start& start) {
  const auto found = jobs_.find(start.key);
  if (found == jobs_.end() || uses_.count({start.key, start.slot}) == 0) return;
  Job& job = found->second;
  if (job.next_slot == start.slot + 1) --job.next_slot;
  if (!job.removed) SetWanted(start.key, &job, job.wanted + 1);
  Release(start.key, start.slot);
}

// ---- the pass ----

std::optional<Reservation> Scheduler::ReserveFor(const KnownShape& shape, int64_t now_us) const {
  std::vector<Use> uses;
  uses.reserve(uses_.size());
  for (const auto& [name, held] : uses_)
    uses.push_back({&held.shape->shape, &held.allocation, held.started_us});
  return Reserve(shape.shape, pool_, std::move(uses), now_us);
}

// What was started may let the reservation move to GPUs that are in use until then, and so make room for
// more: goes round until nothing starts.
std::vector<Start> Scheduler::Pass(int64_t now_us) {
  std::vector<Start> starts;
  size_t before = 0;
  while (changed_ && !lines_.empty()) {
    Round(now_us, &starts);
    changed_ = starts.size() > before;
    before = starts.size();
  }
  return starts;
}

void Scheduler::Round(int64_t now_us, std::vector<Start>* starts) {
  ++round_;
  const auto after = [](const Line* a, const Line* b) { return Precedes(*b, *a); };
  std::vector<Line*> heap;
  for (auto& [name, line] : lines_) heap.push_back(&line);
  std::make_heap(heap.begin(), heap.end(), after);
  std::optional<Reservation> kept;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), after);
    Line* line = heap.back();
    heap.pop_back();
    KnownShape* shape = line->shape;
    if (shape->blocked == round_) continue;
    auto place = pool_.Place(shape->shape, now_us, kept ? &*kept : nullptr);
    if (!place) {  // what is free only shrinks during a round, so nothing of this shape fits any more
      shape->blocked = round_;
      if (!kept) kept = ReserveFor(*shape, now_us);
      continue;
    }
    if (kept && place->node == kept->node && !EndsBefore(shape->shape, now_us, *kept)) {
      kept->spare_cpus -= shape->shape.PlacesOf(place->nodes);
      kept->spare_mem -= shape->shape.MemOf(place->nodes);
    }
    const uint64_t key = line->jobs.begin()->second;
    const bool line_ends = line->jobs.size() == 1 && jobs_.at(key).wanted == 1;
    starts->push_back(Begin(key, std::move(*place), now_us));
    if (line_ends) continue;  // and the line is gone
    heap.push_back(line);
    std::push_heap(heap.begin(), heap.end(), after);
  }
}

Result<void> Scheduler::Fits(const Resources& resources) const {
  Result<void> fits = CheckFits(resources, Machine{});
  for (const Machine& machine : pool_.machines()) {
    fits = CheckFits(resources, machine);
    if (fits) break;
  }
  return fits;
}

}  // namespace overcap
