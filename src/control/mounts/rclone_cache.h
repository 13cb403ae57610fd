// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace overcap {

// Whether what rclone notes of a file in its cache says that it is not in the store yet. Pure.
bool IsDirtyNote(std::string_view json);

// How many files of an rclone cache folder are not in the store yet.
int64_t CountDirty(const std::string& cache);

}  // namespace overcap
