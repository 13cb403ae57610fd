// SPDX-License-Identifier: Apache-2.0
// When a job that waits will start: by replays of the queue that the picture shows. Pure but for the threads.
#pragma once

#include <vector>

#include "control/why.h"
#include "model/past_run.h"
#include "model/policy/policy.h"
#include "sched/forecast/forecast.h"

namespace overcap {

struct PromiseOptions {
  int replays = 200;
  uint64_t seed = 1;
  const Policy* policy =
      nullptr;  // that the cluster's own engine follows; nullptr: what the picture tells is all
  forecast::Correction correction = {};  // by what became of earlier promises
};

// The numbers that matter for its start, which the reason does not tell: what its lab has, and who ends
// first or has to give way. `policy`: as in PromiseOptions.
void AddNumbers(const ClusterPicture& picture, const PictureJob& job, const Policy* policy, int64_t now_us,
                WhyAnswer* answer);

// Adds its start and what would start sooner, or why nothing can be promised.
void Promise(const ClusterPicture& picture, size_t row, const std::vector<PastRun>& past, int64_t now_us,
             const PromiseOptions& options, const forecast::Crew& crew, WhyAnswer* answer);

// For people, one line each: the start, and what it rests on.
std::vector<std::string> StartWords(const WhyAnswer& answer, int64_t now_us);

}  // namespace overcap
