// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace overcap {

// The systemd unit of an engine for all users of a machine; `binary` is this program, `words` are the flags
// that it is started with after `daemon --system`, each after a blank. Without the last newline.
std::string SystemUnit(const std::string& binary, const std::string& words);

}  // namespace overcap
