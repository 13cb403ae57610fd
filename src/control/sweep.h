// SPDX-License-Identifier: Apache-2.0
// Parameter sweeps: one array whose tasks differ in variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"

namespace overcap {

// "lr=1e-4,1e-3" -> lr with two values. "\," is a comma in a value, "\\" a backslash. kUsage for a name that
// is no variable's, that Overcap sets itself, or without any value.
Result<SweepAxis> ParseSweepAxis(std::string_view text);

// Each text is an axis; kUsage when a name stands twice or there are more combinations than tasks of an
// array.
Result<std::vector<SweepAxis>> ParseSweep(const std::vector<std::string>& texts);

// One task for each combination, at most `limit` at the same time; 0: no limit.
ArraySpec SweepArray(const std::vector<SweepAxis>& sweep, int limit);

// The values of the combination at a position, in the order of the axes.
std::vector<std::string> SweepValues(const std::vector<SweepAxis>& sweep, int position);

}  // namespace overcap
