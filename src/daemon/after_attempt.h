// SPDX-License-Identifier: Apache-2.0
// Decides what becomes of a job when one of its slots has ended. Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/job.h"

namespace overcap {

constexpr int kMostLosses = 3;         // a job whose agent is killed again and again is not started for ever
constexpr int kMostFailedStarts = 30;  // nor one whose agent cannot be started, a second apart

enum class NextStep { kGoOn, kRequeue, kEnd };

struct AfterAttempt {
  NextStep step = NextStep::kGoOn;
  std::string reason;  // kRequeue
  Ending ending;       // kEnd
};

// `job` with the slot's end already applied; `ended` is how it ended. A slot that ends as kQueued never ran.
AfterAttempt DecideAfterAttempt(const Job& job, const Ending& ended, int failed_starts);

// How an array has ended, from the results of its tasks.
Ending ArrayEnding(const Job& job);

}  // namespace overcap
