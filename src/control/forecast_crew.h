// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sched/forecast/forecast.h"

namespace overcap {

// Threads that live as long as one call of `run`. What they compute must not depend on who computes it.
forecast::Crew ThreadCrew(int threads);
// As many as this process may use at once, at most 8.
forecast::Crew CrewOfThisMachine();

}  // namespace overcap
