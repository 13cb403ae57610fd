// SPDX-License-Identifier: Apache-2.0
// Commands that only programs type: jobs, launchers, sshd. They need no configuration and no cluster.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

using HiddenCommand = Result<int> (*)(const std::vector<std::string>& words);  // with the verb

// nullptr: `words` are for people.
HiddenCommand FindHiddenCommand(const std::vector<std::string>& words);

}  // namespace overcap
