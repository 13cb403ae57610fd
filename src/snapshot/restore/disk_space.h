// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace overcap {

// kUnavailable that says what is needed and what is there.
Error DiskFull(int folder_fd, const std::string& folder, int64_t needed_bytes);

// The same before anything is written, when it is plain that the bytes will not fit. A file system that
// compresses is given the benefit of the doubt.
std::optional<Error> WillNotFit(int folder_fd, const std::string& folder, int64_t needed_bytes);

}  // namespace overcap
