// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/launch.h"
#include "launch/allocation.h"
#include "launch/site/site.h"

namespace overcap {

struct Here {
  Allocation allocation;
  std::optional<SiteFacts> site;
};

// Where this process is, from its environment, its site's file, its configuration and what its scheduler
// says. `hostfile` ("": none) takes the place of the hosts.
Result<Here> DetectHere(const LaunchWorld& world, const std::string& hostfile);

}  // namespace overcap
