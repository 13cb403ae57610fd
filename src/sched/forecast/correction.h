// SPDX-License-Identifier: Apache-2.0
// What became of earlier promises, as a correction of the next one. Pure.
//
// Replays know nothing of jobs that come later, of nodes that break, of users who change their minds. How far
// that puts a start off is seen in the record: how many times longer than foreseen jobs waited. A promise is
// stretched so that as many of the earlier ones would have held as should.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/forecast/start_times.h"

namespace overcap::forecast {

struct PastPromise {
  int64_t p50_s = 0, p90_s = 0;  // waits that were foreseen, without any correction
  int64_t waited_s = 0;
  bool started = false;  // else it waits still, or was gone: it waits longer than that
};

struct Correction {
  double p50 = 1, p90 = 1;  // how many times longer
  int promises = 0;         // it rests on; 0: there is none
};

// With few promises little is corrected, and with less than kFewestPromises nothing.
constexpr int kFewestPromises = 8;
Correction CorrectionFrom(const std::vector<PastPromise>& past);

// P50 is never after P90, and neither before now.
StartTimes Corrected(const StartTimes& foreseen, int64_t now_s, const Correction& by);

}  // namespace overcap::forecast
