// SPDX-License-Identifier: Apache-2.0
// Whether a job can ever run on a machine; the same check for every caller, so that the user reads the same
// words.
#pragma once

#include "base/result.h"
#include "model/job_spec.h"
#include "model/machine.h"

namespace overcap {

// kUsage says what cannot be had, "asks for 8 GPUs, this machine has 4", for a machine on which nothing else
// runs.
Result<void> CheckFits(const Resources& resources, const Machine& machine);

}  // namespace overcap
