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

// A script of Python that cannot be run as it is gets its Python, as torchrun does it.
void GivePython(const LaunchWorld& world, std::vector<std::string>* command);

}  // namespace overcap::cli
