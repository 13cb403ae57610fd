// SPDX-License-Identifier: Apache-2.0
// Sorting of places. Pure.
#pragma once

#include <vector>

#include "sched/pooled/waiting_lines.h"

namespace overcap::pooled {

// As std::sort, in a time that grows with their number alone.
void SortPlaces(std::vector<Place>* places);

}  // namespace overcap::pooled
