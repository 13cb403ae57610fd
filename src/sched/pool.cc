// SPDX-License-Identifier: Apache-2.0
#include "sched/pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/gpu_type.h"

namespace overcap {
namespace {

constexpr int64_t kNoMemLimit = std::numeric_limits<int64_t>::max() / 4;
constexpr int64_t kLongest = int64_t{1000} * 366 * 86400;  // seconds; keeps sums far from overflow

std::vector<char> Matching(const std::string& expression, const Machine& machine) {
  std::vector<char> matching;
  for (const Gpu& gpu : machine.gpus)
    matching.push_back(GpuTypeMatches(expression, gpu.type).value_or(false));
  return matching;
}

// A machine's CPUs have a position, by which their users are counted, and the kernel's name.
int CpuId(const Machine& machine, size_t position) {
  return machine.cpu_ids.empty() ? static_cast<int>(position) : machine.cpu_ids[position];
}

// Past all positions when the machine has no such CPU (any more).
size_t CpuPosition(const Machine& machine, int id) {
  const std::vector<int>& ids = machine.cpu_ids;
  if (ids.empty()) return id < 0 ? SIZE_MAX : static_cast<size_t>(id);
  const auto at = std::lower_bound(ids.begin(), ids.end(), id);
  return at == ids.end() || *at != id ? SIZE_MAX : static_cast<size_t>(at - ids.begin());
}

}  // namespace

Shape::Shape(const Resources& wanted, const std::vector<Machine>& nodes) : resources(wanted) {
  if (wanted.elastic()) least_nodes = wanted.nodes, most_nodes = wanted.max_nodes;
  cpu_places = (wanted.cpus > 0 || wanted.gpus > 0 ? wanted.cpus : 1) * least_nodes;
  mem_bytes = wanted.mem_bytes * least_nodes;
  for (const Machine& node : nodes) matches.push_back(Matching(wanted.gpu_type, node));
}

int64_t Shape::duration_us() const {
  return std::clamp<int64_t>(resources.time_seconds, 0, kLongest) * 1'000'000;
}

bool EndsBefore(const Shape& shape, int64_t now_us, const Reservation& kept) {
  return kept.at_us && shape.duration_us() > 0 && now_us + shape.duration_us() <= *kept.at_us;
}

Pool::Pool(std::vector<Machine> nodes) : machines_(std::move(nodes)) {
  for (Machine& machine : machines_) {
    const auto cpus = static_cast<size_t>(std::max(0, machine.cpus));
    if (machine.cpu_ids.size() < cpus) machine.cpu_ids.clear();
    nodes_.push_back({std::vector<int>(machine.gpus.size()), std::vector<int>(cpus), machine.cpus,
                      machine.mem_bytes > 0 ? machine.mem_bytes : kNoMemLimit});
  }
}

int Pool::FreeGpus(const Shape& shape, size_t node) const {
  int free = 0;
  for (size_t gpu = 0; gpu < nodes_[node].gpu_users.size(); ++gpu)
    free += IsFree(node, gpu) && shape.matches[node][gpu];
  return free;
}

std::vector<int> Pool::FreeGpuIndices(size_t node) const {
  std::vector<int> free;
  for (size_t gpu = 0; gpu < nodes_[node].gpu_users.size(); ++gpu) {
    if (IsFree(node, gpu)) free.push_back(machines_[node].gpus[gpu].index);
  }
  return free;
}

std::optional<Grant> Pool::Place(const Shape& shape, int64_t now_us, const Reservation* kept) const {
  std::optional<Grant> best;
  if (shape.resources.nodes != shape.least_nodes) return best;  // more machines than one
  const bool ends_in_time = kept == nullptr || EndsBefore(shape, now_us, *kept);
  int least_free = std::numeric_limits<int>::max();
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const int free = FreeGpus(shape, node);
    if (free >= least_free) continue;
    auto allocation = PlaceOn(shape, node, ends_in_time, kept);
    if (!allocation) continue;
    best = std::move(allocation);
    least_free = free;
  }
  return best;
}

// How many agents of it could be on an empty machine, at most as many as it wants.
int Pool::MostNodesOn(const Shape& shape, size_t at) const {
  const int gpus = shape.GpusOf(1), places = shape.PlacesOf(1);
  const auto have = static_cast<int>(nodes_[at].gpu_users.size());
  int most = shape.most_nodes;
  if (gpus > 0) most = std::min(most, have / gpus);
  if (places > 0) most = std::min(most, machines_[at].cpus / places);
  return most;
}

// An elastic job gets as many as there is room for, from its most to its least.
std::optional<Grant> Pool::PlaceOn(const Shape& shape, size_t at, bool ends_in_time,
                                   const Reservation* kept) const {
  if (shape.most_nodes == 1) return PlaceNodes(shape, 1, at, ends_in_time, kept);
  for (int nodes = MostNodesOn(shape, at); nodes >= shape.least_nodes; --nodes) {
    if (auto allocation = PlaceNodes(shape, nodes, at, ends_in_time, kept)) return allocation;
  }
  return std::nullopt;
}

std::optional<Grant> Pool::PlaceNodes(const Shape& shape, int nodes, size_t at, bool ends_in_time,
                                      const Reservation* kept) const {
  const Node& node = nodes_[at];
  const bool keeps = kept != nullptr && kept->node == static_cast<int>(at);
  const int places = shape.PlacesOf(nodes);
  const int64_t mem = shape.MemOf(nodes);
  if (places > node.cpus || mem > node.mem) return std::nullopt;
  if (keeps && !ends_in_time && (places > kept->spare_cpus || mem > kept->spare_mem)) return std::nullopt;

  Grant allocation{static_cast<int>(at), {}, {}, nodes};
  const auto wanted = static_cast<size_t>(shape.GpusOf(nodes));
  const auto take_gpus = [&](bool reserved) {
    for (size_t gpu = 0; gpu < node.gpu_users.size() && allocation.gpus.size() < wanted; ++gpu) {
      if (!IsFree(at, gpu) || !shape.matches[at][gpu] || (keeps && kept->gpus[gpu]) != reserved) continue;
      allocation.gpus.push_back(machines_[at].gpus[gpu].index);
    }
  };
  // Kept GPUs are of use only to work that ends in time; so that takes them first.
  if (ends_in_time) take_gpus(true);
  take_gpus(false);
  if (allocation.gpus.size() < wanted) return std::nullopt;
  std::sort(allocation.gpus.begin(), allocation.gpus.end());

  const auto cpus = static_cast<size_t>(shape.CpusOf(nodes));
  for (size_t cpu = 0; cpu < node.cpu_users.size() && allocation.cpus.size() < cpus; ++cpu) {
    if (node.cpu_users[cpu] == 0) allocation.cpus.push_back(CpuId(machines_[at], cpu));
  }
  if (allocation.cpus.size() < cpus) return std::nullopt;
  return allocation;
}

void Pool::Change(const Shape& shape, const Grant& allocation, int sign) {
  const auto at = static_cast<size_t>(allocation.node);
  if (at >= nodes_.size()) return;  // adopted from a machine that is no longer configured
  Node& node = nodes_[at];
  node.cpus -= sign * shape.PlacesOf(allocation.nodes);
  node.mem -= sign * shape.MemOf(allocation.nodes);
  for (size_t gpu = 0; gpu < node.gpu_users.size(); ++gpu) {
    const int index = machines_[at].gpus[gpu].index;
    if (std::find(allocation.gpus.begin(), allocation.gpus.end(), index) != allocation.gpus.end())
      node.gpu_users[gpu] += sign;
  }
  for (const int cpu : allocation.cpus) {
    const size_t position = CpuPosition(machines_[at], cpu);
    if (position < node.cpu_users.size()) node.cpu_users[position] += sign;
  }
}

}  // namespace overcap
