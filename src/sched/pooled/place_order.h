// SPDX-License-Identifier: Apache-2.0
// Sorting of places by score. Pure.
#pragma once

#include <vector>

#include "sched/pooled/waiting_lines.h"

namespace overcap::pooled {

// Higher scores first; equal ones stay in their order. As std::stable_sort, in a time that grows with their
// number alone.
void SortByScore(std::vector<Rank>* ranks);

}  // namespace overcap::pooled
