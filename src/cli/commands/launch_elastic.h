// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cli/args.h"
#include "control/elastic/elastic_options.h"
#include "control/launch.h"

namespace overcap::cli {

// Whether these flags ask for an elastic group: a range of nodes, a rendezvous, or what torchrun is given.
bool AsksForElastic(const Args& args);

// Those flags, Overcap's own and torchrun's; `common` holds what both kinds of launch have.
Result<ElasticOptions> ReadElastic(const Args& args, const LaunchOptions& common, const LaunchWorld& world);

// Puts Python before a module (-m) and before a script that cannot be run as it is. In an elastic group, as
// torchrun does, also before a script that ends in .py and before one without any ending.
Result<void> GivePython(const Args& args, const LaunchWorld& world, bool group,
                        std::vector<std::string>* command);

}  // namespace overcap::cli
