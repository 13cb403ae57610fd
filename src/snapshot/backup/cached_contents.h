// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/scan.h"
#include "snapshot/format/content_map.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Whether all that the cache names is sure to be stored: some snapshot has its tree. To be asked after the
// writer has registered. The newest of the workspace is looked at first.
Result<bool> HasSnapshotOf(const Repository& repository, const std::string& workspace, const Digest& tree);

// How a repository is asked.
struct ContentLookup {
  std::function<Result<bool>(const Digest& id)> has;  // whether it has that chunk
  GetMeta get;                                        // one that it has
};

// The files that are as the cache knows them and of which the repository lacks something. Chunks are only
// looked up; of files of many the maps are read, since a map may have outlived its chunks.
Result<std::vector<ScannedEntry*>> LackingContents(Scan* scan, const ContentLookup& lookup);

}  // namespace overcap
