// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sys/variables.h"

namespace overcap {

// Whether this machine belongs to a Slurm cluster. `program`: where one of Slurm's programs was found, or "".
// Asks for the existence of a few files at most; no process is started.
bool SlurmIsSetUp(const Variables& variables, std::string_view program,
                  const std::function<bool(const std::string& path)>& exists);

}  // namespace overcap
