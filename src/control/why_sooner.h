// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/why.h"

namespace overcap {

// What would let a job that waits start sooner: another partition, fewer GPUs, another type. Only what is
// free now and not wanted by somebody who goes first.
void AddSooner(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer);

}  // namespace overcap
