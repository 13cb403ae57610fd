// SPDX-License-Identifier: Apache-2.0
// Which values each task of a sweep stands for.
#pragma once

#include <string>

#include "model/job_spec.h"

namespace overcap::cli {

// A table with a row for each task; very many are not all shown.
std::string CombinationsText(const JobSpec& spec, int width);

// The JSON object `json` with `combinations` [{task, values}] at its end; as it is for jobs without a sweep.
std::string WithCombinations(std::string json, const JobSpec& spec);

}  // namespace overcap::cli
