// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// The systemd unit of an engine for all users of a machine; `binary` is this program, `words` are the flags
// that it is started with after `daemon --system`, each after a blank. Without the last newline.
std::string SystemUnit(const std::string& binary, const std::string& words);

// Whether root may run this program at boot: kDenied when a user other than root owns or can write it or a
// folder above it. Where a group can, the warning to print; else "".
Result<std::string> CheckRootsProgram(const std::string& binary);

}  // namespace overcap
