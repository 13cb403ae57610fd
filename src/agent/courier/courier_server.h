// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/courier/courier_options.h"
#include "base/result.h"

namespace overcap {

// `overcap agent courier`: serves the agent at the other end of its standard input until that says `finish`
// or is gone, then until all is uploaded (docs/formats/job-store.md). The caller's process ends at once; a
// child goes on.
Result<int> RunCourier(const CourierOptions& options, const JobStoreOpener& open);

}  // namespace overcap
