// SPDX-License-Identifier: Apache-2.0
// Job records in the engine's replies.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_record.h"

namespace overcap {

// Of `{"jobs": [record...]}`.
Result<std::vector<JobRecord>> ReadRecords(std::string_view reply);

// The `columns` that a brief list asks for, as JSON, and the records of `{"rows": [[...]...]}` that come
// back.
extern const std::string_view kBriefColumns;
Result<std::vector<JobRecord>> ReadBriefRecords(std::string_view reply);

}  // namespace overcap
