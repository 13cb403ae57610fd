// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/trace/trace.h"

namespace overcap {

// The history that a file holds, also one that gzip has packed. `format` "": by its first lines. Errors of
// the text begin with the file's name; nothing is refused for jobs that cannot be read: Trace::skips says
// which.
Result<Trace> ReadTraceFile(const std::string& path, std::string_view format, const ColumnMap& columns);

// What gzip has packed, members one after the other; kUsage when it is damaged or more than `most` bytes.
Result<std::string> Gunzip(std::string_view packed, size_t most);

}  // namespace overcap
