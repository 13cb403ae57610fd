// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// What is said of `path` of this machine when it is '/', the user's home folder, or holds that one: "is your
// home folder". "" for all others. Links are followed.
std::string_view WhyPrecious(const std::string& path, const Variables& variables);

// kUsage when it is one of these: all of it is never meant to be removed or replaced.
Result<void> RefusePreciousFolder(const std::string& path, const Variables& variables);

}  // namespace overcap
