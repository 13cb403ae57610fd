// SPDX-License-Identifier: Apache-2.0
// What an engine for all users of a machine is started with (docs/formats/system-engine.md).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "control/config.h"
#include "model/machine.h"
#include "model/policy/policy.h"

namespace overcap {

// As flags say it; "": not said.
struct SystemWords {
  std::string root, socket, policy_file;
};

// With what is usual where nothing was said. kUsage for a path that is not absolute.
Result<SystemWords> CompleteSystemWords(SystemWords words);
// The flags that say the same, each after a blank; none for what is usual.
std::string SystemFlags(const SystemWords& words);

struct SystemSetup {
  std::optional<Policy> policy;
  Machine machine;  // as a cluster that is shared declares it, else as `local` does
};
// Reads the policy; kUsage "FILE:LINE: ..." for what is wrong with it.
Result<SystemSetup> ReadSystemSetup(const SystemWords& words, const Config& config);

}  // namespace overcap
