// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace overcap {

// Whether what rclone notes of a file in its cache says that the store has it. A note that is cut off does
// not: rclone writes them in place, so that is how one looks while it is written, or when rclone was killed
// meanwhile. Pure.
bool IsCleanNote(std::string_view json);

// How many files of an rclone cache folder are not in the store yet, or may not be.
int64_t CountDirty(const std::string& cache);

}  // namespace overcap
