// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/alternatives.h"

#include <algorithm>
#include <set>

namespace overcap::forecast {
namespace {

using pooled::Bit;
using pooled::PoolJob;

constexpr int64_t kShortestS = 600;
constexpr int kMostTypes = 6, kMostPartitions = 6;

void AddPartitions(const LiveQueue& queue, const PoolJob& job, uint64_t partitions,
                   std::vector<Alternative>* out) {
  int added = 0;
  for (size_t i = 0; i < queue.rules.partitions.size() && added < kMostPartitions; ++i) {
    const auto at = static_cast<int>(i);
    if ((partitions & Bit(at)) == 0 || (job.partitions & Bit(at)) != 0) continue;
    Alternative other{Alternative::Kind::kPartition, job};
    other.partition = at;
    other.asks.partitions = Bit(at);
    out->push_back(other);
    ++added;
  }
}

// The same on fewer GPUs of each node; where that is one already, on fewer nodes.
void AddFewer(const PoolJob& job, std::vector<Alternative>* out) {
  const int all = job.need.all_gpus();
  const bool nodes = job.need.nodes > 1;
  const int most = nodes ? job.need.nodes : job.need.gpus;
  std::set<int, std::greater<>> counts;
  if (most <= 8) {
    for (int count = 1; count < most; ++count) counts.insert(count);
  } else {
    for (const int part : {7, 6, 4, 2, 1}) counts.insert(most * part / 8);
  }
  for (const int count : counts) {
    if (count < 1 || all < 1) continue;
    Alternative other{Alternative::Kind::kFewer, job};
    (nodes ? other.asks.need.nodes : other.asks.need.gpus) = count;
    if (!nodes) other.asks.need.cpus = std::max(1, job.need.cpus * count / most);
    other.gpus = other.asks.need.all_gpus();
    out->push_back(other);
  }
}

// Types of other names; several kinds of nodes may have the same.
void AddTypes(const LiveQueue& queue, const PoolJob& job, std::vector<Alternative>* out) {
  if (job.need.gpus == 0) return;
  std::set<std::string_view> known;
  for (size_t i = 0; i < queue.rules.types.size(); ++i) {
    if ((job.need.types & Bit(static_cast<int>(i))) != 0) known.insert(queue.rules.types[i]);
  }
  int added = 0;
  for (size_t i = 0; i < queue.rules.types.size() && added < kMostTypes; ++i) {
    const std::string& name = queue.rules.types[i];
    if (name.empty() || !known.insert(name).second) continue;
    Alternative other{Alternative::Kind::kType, job};
    other.type = static_cast<int>(i);
    other.asks.need.types = 0;
    for (size_t same = i; same < queue.rules.types.size(); ++same) {
      if (queue.rules.types[same] == name) other.asks.need.types |= Bit(static_cast<int>(same));
    }
    out->push_back(other);
    ++added;
  }
}

void AddShorter(const PoolJob& job, std::vector<Alternative>* out) {
  for (const int64_t part : {2, 4, 12}) {
    if (job.limit_s / part < kShortestS) return;
    Alternative other{Alternative::Kind::kShorter, job};
    other.limit_s = job.limit_s / part / 60 * 60;
    other.asks.limit_s = other.limit_s;
    out->push_back(other);
  }
}

}  // namespace

std::vector<Alternative> AlternativesOf(const LiveQueue& queue, uint64_t partitions) {
  const PoolJob& job = queue.jobs[queue.target].told;
  std::vector<Alternative> out;
  AddPartitions(queue, job, partitions, &out);
  if (job.need.gpus > 0) AddFewer(job, &out);
  AddTypes(queue, job, &out);
  AddShorter(job, &out);
  return out;
}

}  // namespace overcap::forecast
