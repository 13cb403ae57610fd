// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace overcap {

enum class Partials { kStay, kGo };  // what a copy that was cut off has left (.overcap-part-)

// Removes from a folder all that is no file of these relative paths, or a folder of such: so a copy into it
// follows no link, and meets no folder where a file belongs. `.overcap` in it is left alone.
Result<void> TidyFolder(const std::string& folder, const std::set<std::string>& files, Partials partials);

}  // namespace overcap
