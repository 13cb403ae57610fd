// SPDX-License-Identifier: Apache-2.0
// A line of text and a line with its SHA-256, as small objects are written that must not be believed when
// they are damaged. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace overcap {

// `line` has no newline in it.
std::string WithHashLine(std::string line);
// The first line; nullopt when the second one is not its hash, or when there is more.
std::optional<std::string_view> CheckedLine(std::string_view bytes);

}  // namespace overcap
