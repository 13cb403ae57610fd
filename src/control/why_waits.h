// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/why.h"

namespace overcap {

// The reason of a job that waits and the numbers behind it. `id` is what its user calls it.
void ExplainWait(const ClusterPicture& picture, const PictureJob& job, const std::string& id,
                 WhyAnswer* answer);

// Waiting jobs of the same partitions that go first, and the GPUs that they ask for.
struct Ahead {
  int jobs = 0, gpus = 0;
};
Ahead JobsAhead(const ClusterPicture& picture, const PictureJob& job);

// The cap that a job waits for, with who has what of it; none when it is not known.
std::optional<WhyCap> CapBehind(const ClusterPicture& picture, const PictureJob& job);

}  // namespace overcap
