// SPDX-License-Identifier: Apache-2.0
#include "sched/reservation.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace overcap {
namespace {

constexpr int64_t kNobodyKnows = std::numeric_limits<int64_t>::max();

// What has run longer than its limit is being stopped: it ends now.
int64_t EndOf(const Use& use, int64_t now_us) {
  if (use.shape->duration_us() == 0) return kNobodyKnows;
  return std::max(now_us, use.started_us + use.shape->duration_us());
}

// Of the GPUs that are free by then, those that are in use now: what is free now stays for others as far as
// possible.
std::vector<char> KeptGpus(const Shape& shape, const Pool& pool, const Pool& by_then, size_t node) {
  std::vector<char> kept(shape.matches[node].size());
  int missing = shape.resources.gpus;
  for (const bool free_now : {false, true}) {
    for (size_t i = kept.size(); i-- > 0 && missing > 0;) {
      if (!by_then.IsFree(node, i) || !shape.matches[node][i] || pool.IsFree(node, i) != free_now) continue;
      kept[i] = 1;
      --missing;
    }
  }
  return kept;
}

}  // namespace

std::optional<Reservation> Reserve(const Shape& shape, const Pool& pool, std::vector<Use> uses,
                                   int64_t now_us) {
  std::stable_sort(uses.begin(), uses.end(), [&](const Use& a, const Use& b) {
    return std::pair(EndOf(a, now_us), a.started_us) < std::pair(EndOf(b, now_us), b.started_us);
  });
  Pool by_then = pool;
  int64_t at = now_us;
  auto place = by_then.Place(shape, now_us, nullptr);
  for (auto use = uses.begin(); !place && use != uses.end(); ++use) {
    by_then.Give(*use->shape, *use->allocation);
    at = EndOf(*use, now_us);
    place = by_then.Place(shape, now_us, nullptr);
  }
  if (!place) return std::nullopt;
  const auto node = static_cast<size_t>(place->node);
  Reservation kept;
  kept.node = place->node;
  kept.gpus = KeptGpus(shape, pool, by_then, node);
  kept.spare_cpus = by_then.FreeCpus(node) - shape.cpu_places;
  kept.spare_mem = by_then.FreeMem(node) - shape.mem_bytes;
  if (at != kNobodyKnows) kept.at_us = at;
  return kept;
}

}  // namespace overcap
