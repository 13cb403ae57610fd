// SPDX-License-Identifier: Apache-2.0
// A folder that was compared with a tree, and what was seen of it: a restore right after that need not look
// again.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/restore/restore.h"
#include "snapshot/restore/survey.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

struct FolderLook {
  CompareReport report;
  std::shared_ptr<const ChunkIndex> index;
  WantedTree tree;
  Survey survey;
  Digest next_id;
  std::optional<WantedTree> next;  // all of CompareRequest::next; none when it cannot be read
  int64_t began_ns = 0;            // wall time
  // The folder was seen to be `tree` by the cache alone: `tree` and `survey` are empty, this is of `next`.
  std::optional<Survey> next_survey;
};

Result<FolderLook> LookAtFolder(const Repository& repository, const CompareRequest& request);

// What SurveyTarget would find for another tree in a folder that was just seen to be `look.tree`, without
// looking. Pure.
Survey SurveyFromLook(const FolderLook& look, const WantedTree& wanted, const SurveyRequest& request);
// Whether it can tell: the folder was as its tree says, all of it on one file system.
bool CanSurveyFrom(const FolderLook& look);

}  // namespace overcap
