// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "control/fanout/virtual_packs.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// What `O` frames brought, as a repository in memory whose data comes from `source`; null: it has none to
// give. One for each tree in a process.
Result<Repository> RepositoryOf(const std::vector<fanout::Object>& objects, const Digest& tree,
                                ChunkSource* source);

}  // namespace overcap
