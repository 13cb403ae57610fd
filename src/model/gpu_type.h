// SPDX-License-Identifier: Apache-2.0
// GPU type sets as the user writes them: 'a40', 'a40|rtx_6000', '!titan_x', '(a40|a100)&!mig'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// Whether a GPU of `type` is in the set; names compare without case, and '-', ' ' and '_' are the same.
// A name may also be a run of whole words of the type: 'a100' and 'mig' match "a100_mig", 'a40' not "a4000".
// '!' binds most, then '&', then '|' (also written ','). An empty expression matches every type. A bad
// expression is kUsage with the column.
Result<bool> GpuTypeMatches(std::string_view expression, std::string_view type);
Result<void> CheckGpuTypeExpression(std::string_view expression);
// "NVIDIA A40" -> "a40", "NVIDIA H200" -> "h200", "GeForce RTX 2080 Ti" -> "rtx_2080_ti".
std::string NormalGpuType(std::string_view name);

}  // namespace overcap
