// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/result.h"
#include "snapshot/backup/scan.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Whether all that the cache names is sure to be stored: some snapshot has its tree. To be asked after the
// writer has registered. The newest of the workspace is looked at first.
Result<bool> HasSnapshotOf(const Repository& repository, const std::string& workspace, const Digest& tree);

// Whether something is gone that the files have which are as the cache knows them: a lookup for each, nothing
// is read. Of files of many chunks only the map is looked up.
Result<bool> LacksContents(Scan* scan, const std::function<Result<bool>(const Digest&)>& has);

// Asks the writer for the contents of all files that are as the cache knows them; files of which something is
// missing are to be read. Their number.
Result<int64_t> DistrustCache(Scan* scan, ChunkWriter* writer);

}  // namespace overcap
