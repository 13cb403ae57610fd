// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "control/config.h"
#include "sys/variables.h"

namespace overcap {

// What a capture of this folder asks before it reads anything. Somebody who submits in '/' or in the home
// folder has mostly forgotten to change to the project: where there is more than the configured size and no
// .overcapignore says what is meant, it is refused. Empty for all other folders.
std::function<Result<void>(int64_t files, int64_t bytes)> CaptureLimit(const std::string& folder,
                                                                       const Variables& variables,
                                                                       const Config& config);

}  // namespace overcap
