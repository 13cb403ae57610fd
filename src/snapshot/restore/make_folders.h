// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "snapshot/restore/file_maker.h"
#include "snapshot/restore/remove_extra.h"
#include "snapshot/restore/spread_inodes.h"

namespace overcap {

// Folders whose owner had no right to write in them and now has; the old modes.
using OpenedFolders = std::vector<std::pair<uint32_t, uint32_t>>;

// Makes the folders that are missing, clears what is in the way of entries of another type, and lets the
// owner write where something will be made or removed. A folder in the way of a file goes when it is empty,
// or with `remover`. Fills `hands_down` and `touched` of the scene.
OpenedFolders MakeFolders(RestoreScene* scene, ExtraRemover* remover, SpreadInodes* spread);

// At the end, deepest first: modes, owners, attributes and times of all folders that were made, changed, or
// had something made or removed in them.
void FinishFolders(RestoreScene* scene, const OpenedFolders& opened);

}  // namespace overcap
