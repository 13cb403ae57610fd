// SPDX-License-Identifier: Apache-2.0
// EASY backfill: the first job in the queue that cannot start gets a reservation, and a later one may start
// only if that cannot delay it.
//
// When the reservation begins follows from the time limits of what runs. Work without a limit ends nobody
// knows when: it is taken to end after all that has one, oldest first. A reservation that needs such an end
// has no time, so nothing counts as ending before it, and only what fits beside it may start. So a queue
// without any limits is first in first out with what is kept for the first job growing until it can start: it
// is never starved.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sched/pool.h"

namespace overcap {

// An allocation in use, as far as a reservation is concerned.
struct Use {
  const Shape* shape = nullptr;
  const Grant* allocation = nullptr;
  int64_t started_us = 0;
};

// Nothing: the shape would not fit even when all of `uses` had ended. Of uses that end and began at the same
// time the one that is named first is taken to end first.
std::optional<Reservation> Reserve(const Shape& shape, const Pool& pool, std::vector<Use> uses,
                                   int64_t now_us);

}  // namespace overcap
