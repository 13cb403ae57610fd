// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/prune_survey.h"

namespace overcap {

struct CopiedPacks {
  std::vector<uint32_t> packs;  // all that is used of these is in others now, durable and indexed
  int64_t bytes = 0;            // raw
};

// Copies what is used of `packs` into new ones. A pack with a used chunk that cannot be read is left out.
// Chunks in the packs `leave` are not relied on.
Result<CopiedPacks> CopyUsedChunks(const Repository& repository, const RepositorySurvey& survey,
                                   const std::vector<uint32_t>& packs, std::unordered_set<Digest> leave);

}  // namespace overcap
