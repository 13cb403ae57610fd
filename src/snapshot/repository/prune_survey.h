// SPDX-License-Identifier: Apache-2.0
// All that a prune must know of a repository, as it is now.
#pragma once

#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/condemned_list.h"
#include "snapshot/repository/live_chunks.h"
#include "snapshot/repository/upkeep.h"

namespace overcap {

struct RepositorySurvey {
  CondemnedList condemned;
  ChunkIndex index;
  ChunkIndex::LoadReport report;
  ChunkSet live;
};

// condemned/, the packs, the indexes and the snapshots, in this order; then the trees. Taken anew when
// something went while it was read. kCorrupt when a snapshot or a tree cannot be read.
Result<RepositorySurvey> SurveyRepository(const Repository& repository, const PruneOptions& options);

}  // namespace overcap
