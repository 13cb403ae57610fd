// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/config.h"
#include "snapshot/capture.h"
#include "sys/variables.h"

namespace overcap {

// Somebody who submits in '/', in the home folder or above it has mostly forgotten to change to the project:
// where there is more than the configured size, and no .overcapignore says what is meant, that is refused.
// nullopt for all other folders.
std::optional<CaptureOptions::Limit> CaptureLimitOf(const std::string& folder, const Variables& variables,
                                                    const Config& config);

}  // namespace overcap
