// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace overcap {

// "jianfw_1563257309_60ce2fc7": user, unix time in seconds, 8 hex digits. Characters of the user's name that
// are no letter, digit, dot or dash become '-', so that an id is always a safe file name.
std::string MakeJobId(std::string_view user, int64_t unix_seconds, uint32_t random);

// A number of at most 18 digits that no other job of the user has; of an array, plus a task's index, the
// number of the task. `id` is one.
int64_t JobNumber(std::string_view id);

// Whether `text` has that form; everything that becomes a path is checked with it first.
bool IsJobId(std::string_view text);

}  // namespace overcap
