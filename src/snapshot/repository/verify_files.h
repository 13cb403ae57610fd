// SPDX-License-Identifier: Apache-2.0
// Which files suffer from missing or damaged chunks.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/upkeep.h"

namespace overcap {

// Whether all chunks of all trees can be had; cheap for trees that share pages. `usable` says it of a chunk;
// pages are really read.
Result<bool> AllTreesSound(const Repository& repository, const ChunkIndex& index,
                           const std::vector<NamedSnapshot>& snapshots,
                           const std::function<bool(const Digest&)>& usable);

// The files that cannot be restored whole, each in the newest snapshot that has it, `most` of them.
// `snapshots` is oldest first.
Result<std::vector<DamagedFile>> FindDamagedFiles(const Repository& repository, const ChunkIndex& index,
                                                  const std::vector<NamedSnapshot>& snapshots,
                                                  const std::function<bool(const Digest&)>& usable,
                                                  size_t most);

}  // namespace overcap
