// SPDX-License-Identifier: Apache-2.0
// Reads a job spec and its store from parsed JSON, so that text is parsed only once, where it arrives.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "model/job_spec.h"

namespace overcap {

// kCorrupt when it is no object or a field has the wrong type.
Result<JobSpec> ReadSpec(const nlohmann::json& spec);
Result<JobStore> ReadJobStore(const nlohmann::json& store);

}  // namespace overcap
