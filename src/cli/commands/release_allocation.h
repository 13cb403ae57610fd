// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands/person_words.h"

namespace overcap::cli {

// Ends it and says so; waits some seconds for its end.
Result<void> ReleaseAllocation(World& world, const AllocWorld& allocations, const AllocationState& held);

}  // namespace overcap::cli
