// SPDX-License-Identifier: Apache-2.0
// The queue of a cluster whose scheduler is not ours, out of its picture: partitions, order and caps as far
// as they are known, and a line for everything that is not. Pure.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/cluster_picture.h"
#include "sched/forecast/live_queue.h"

namespace overcap::forecast {

struct PictureQueue {
  LiveQueue queue;
  uint64_t offered = 0;  // partitions that the target's user may use, as bits: what may be offered
};

// `target` is a position in picture.jobs. kUnavailable, in words for people, when no start can be foretold:
// it is held, waits for other jobs or a later time, or for a limit whose size is not known.
Result<PictureQueue> QueueOf(const ClusterPicture& picture, size_t target, int64_t now_us);

}  // namespace overcap::forecast
