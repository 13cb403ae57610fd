// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// Asks on the terminal of this process, without showing what is typed. kDenied when there is no terminal,
// nothing was typed in two minutes, or it was left with Ctrl-C.
Result<std::string> AskSecret(const std::string& prompt);

}  // namespace overcap
