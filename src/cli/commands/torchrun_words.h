// SPDX-License-Identifier: Apache-2.0
// What flags of torchrun say about an elastic group, beside its size.
#pragma once

#include <string_view>

#include "cli/command.h"
#include "control/elastic/elastic_options.h"
#include "control/launch.h"

namespace overcap::cli {

// A number from `least` on; `absent` for "".
Result<int> WholeNumber(std::string_view flag, std::string_view text, int least, int absent);

// Where the agents meet, and MASTER_PORT: --rdzv-*, --master-*. Needs the number of nodes.
Result<void> ReadTorchPlace(const Args& args, const LaunchOptions& common, ElasticOptions* options);

// The rest: role, signals, time to shut down, what is shown. Needs the number of ranks.
Result<void> ReadTorchWords(const Args& args, const LaunchOptions& common, const Variables& variables,
                            ElasticOptions* options);

}  // namespace overcap::cli
