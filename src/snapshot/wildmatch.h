// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace overcap {

// Whether a gitignore pattern matches the whole of `path`: `*` and `?` and classes stay within one path
// component, `**` between slashes spans any number of them, `\` takes away a meaning. A pattern that is not
// well formed (open class, `\` at the end) matches nothing. Time is at most quadratic, also for hostile
// patterns.
bool WildMatch(std::string_view pattern, std::string_view path);

}  // namespace overcap
