// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/detect/detect.h"
#include "launch/detect/found_job.h"

namespace overcap {

// Fills in the GPUs of every host of `allocation` that the scheduler, or a host file, has not told, and the
// type, each with its reason. `job` may be nullptr. In this order: the scheduler; what overcap.yaml declares,
// on a machine without a scheduler; what the drivers say, where they count cards after the site file; the
// site file; overcap.yaml; and of what is not the scheduler's or declared, only the visible ones. No host is
// left without a number.
void CountGpus(const DetectInputs& inputs, const FoundJob* job, Allocation* allocation);

}  // namespace overcap
