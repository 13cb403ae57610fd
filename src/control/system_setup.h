// SPDX-License-Identifier: Apache-2.0
// What an engine for all users of a machine is started with (docs/formats/system-engine.md).
#pragma once

#include <string>

#include "base/result.h"
#include "control/config.h"
#include "model/machine.h"

namespace overcap {

constexpr int kUsualStallSeconds = 60;
constexpr int kUsualSlackSeconds = 60;

// As flags say it; "": not said.
struct SystemWords {
  std::string root, socket, policy_file;
  int stall_seconds = kUsualStallSeconds;  // a connection in the middle of something is closed after so long
  int slack_seconds = kUsualSlackSeconds;  // an agent that is so late in ending its job is killed
};

// With what is usual where nothing was said. kUsage for a path that is not absolute.
Result<SystemWords> CompleteSystemWords(SystemWords words);
// The flags that say the same, each after a blank; none for what is usual.
std::string SystemFlags(const SystemWords& words);

struct SystemSetup {
  std::string policy_file;  // "": none
  Machine machine;          // as a cluster that is shared declares it, else as `local` does
};
// The policy is where the words say, else the machine's usual one where there is such a file.
SystemSetup FindSystemSetup(const SystemWords& words, const Config& config);

}  // namespace overcap
