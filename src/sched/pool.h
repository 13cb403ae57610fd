// SPDX-License-Identifier: Apache-2.0
// What the machines have and what of it is free: counts and concrete GPUs and CPUs. A value: copy it to ask
// "what if".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/job_spec.h"
#include "model/machine.h"

namespace overcap {

// What one slot of a job was given.
struct Grant {
  int node = 0;           // position in the list of machines
  std::vector<int> gpus;  // Gpu::index, ascending
  std::vector<int> cpus;  // ids, ascending; empty when the job asked for no CPUs of its own
  int nodes = 1;          // an elastic job's agents that share it, each with as much
  bool operator==(const Grant&) const = default;
};

// One kind of demand. Jobs that ask for the same share one, so that "does it fit" is asked once for all of
// them.
struct Shape {
  Resources resources;
  // A job that asks for neither GPUs nor CPUs takes the place of one CPU (but is not bound to one): else any
  // number of them would run at once. Of an elastic job: with the least that it takes, as the others here.
  int cpu_places = 0;
  int64_t mem_bytes = 0;
  int least_nodes = 1, most_nodes = 1;     // an elastic job's agents on one machine
  std::vector<std::vector<char>> matches;  // [node][GPU's position]: is of a type that it takes

  Shape(const Resources& wanted, const std::vector<Machine>& nodes);
  int64_t duration_us() const;  // 0: no limit
  // What so many nodes of it take.
  int GpusOf(int nodes) const { return resources.gpus / least_nodes * nodes; }
  int CpusOf(int nodes) const { return resources.cpus * nodes; }
  int PlacesOf(int nodes) const { return cpu_places / least_nodes * nodes; }
  int64_t MemOf(int nodes) const { return mem_bytes / least_nodes * nodes; }
};

// What is kept for the first job that cannot start yet: see reservation.h.
struct Reservation {
  int node = 0;
  std::vector<char> gpus;  // by position: kept
  int spare_cpus = 0;      // what work that outlasts `at_us` may still take on that node
  int64_t spare_mem = 0;
  std::optional<int64_t> at_us;  // when it can start at the latest; nothing: nobody knows
};

class Pool {
 public:
  explicit Pool(std::vector<Machine> nodes = {});

  const std::vector<Machine>& machines() const { return machines_; }

  // Where one allocation of this shape goes: the node with the fewest free GPUs, there the lowest free ones.
  // With a reservation, only what does not delay it: work that has ended by then, or what fits beside it.
  std::optional<Grant> Place(const Shape& shape, int64_t now_us, const Reservation* kept) const;

  void Take(const Shape& shape, const Grant& allocation) { Change(shape, allocation, 1); }
  void Give(const Shape& shape, const Grant& allocation) { Change(shape, allocation, -1); }

  int FreeGpus(const Shape& shape, size_t node) const;  // those that match
  std::vector<int> FreeGpuIndices(size_t node) const;
  bool IsFree(size_t node, size_t gpu) const { return nodes_[node].gpu_users[gpu] == 0; }
  int FreeCpus(size_t node) const { return nodes_[node].cpus; }
  int64_t FreeMem(size_t node) const { return nodes_[node].mem; }

 private:
  struct Node {
    std::vector<int> gpu_users, cpu_users;  // 0: free; more than 1 only after a wrong Adopt()
    int cpus = 0;                           // free places
    int64_t mem = 0;
  };

  void Change(const Shape& shape, const Grant& allocation, int sign);
  int MostNodesOn(const Shape& shape, size_t node) const;
  std::optional<Grant> PlaceOn(const Shape& shape, size_t node, bool ends_in_time,
                               const Reservation* kept) const;
  std::optional<Grant> PlaceNodes(const Shape& shape, int nodes, size_t at, bool ends_in_time,
                                  const Reservation* kept) const;

  std::vector<Machine> machines_;
  std::vector<Node> nodes_;
};

// Whether work of this shape that starts now has ended when the reservation begins.
bool EndsBefore(const Shape& shape, int64_t now_us, const Reservation& kept);

}  // namespace overcap
