// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// kUsage when `path` of this machine is '/', the user's home folder, or holds that one: all of it is never
// meant to be removed or replaced. Links are followed.
Result<void> RefusePreciousFolder(const std::string& path, const Variables& variables);

}  // namespace overcap
