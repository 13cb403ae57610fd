// SPDX-License-Identifier: Apache-2.0
// What a mounter that ended had to say. Pure.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

// The last line that it wrote before it explained its usage, as many do at an error, with its cause. At most
// 300 bytes; "": it said nothing.
std::string MounterLastWords(std::string_view text);

}  // namespace overcap
