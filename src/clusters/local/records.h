// SPDX-License-Identifier: Apache-2.0
// Job records in the engine's replies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "model/job_record.h"

namespace overcap {

// Of `{"jobs": [record...]}`.
Result<std::vector<JobRecord>> ReadRecords(std::string_view reply);

// The `columns` that such a list asks for, as JSON, and the records of the `{"rows": [[...]...]}` that come
// back.
std::string ListColumns(ListDetail detail);
Result<std::vector<JobRecord>> ReadRows(std::string_view reply, ListDetail detail);

}  // namespace overcap
