// SPDX-License-Identifier: Apache-2.0
// What the commands share that show a cluster: usage, nodes, why.
#pragma once

#include <string>

#include "cli/world.h"
#include "control/look.h"

namespace overcap::cli {

// A picture of the cluster that the command is about.
Result<ClusterPicture> Look(World& world, const PictureAges& ages);

// Lines below a table: how old it is when it is watched or stale, and what is missing in it.
std::string PictureNotes(const ClusterPicture& picture, int64_t now_us, bool watched);

}  // namespace overcap::cli
