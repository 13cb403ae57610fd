// SPDX-License-Identifier: Apache-2.0
// What a scan found, once all files are read, as a tree and as a cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/chunk_sink.h"
#include "snapshot/backup/file_links.h"
#include "snapshot/backup/scan.h"
#include "snapshot/backup/seen.h"

namespace overcap {

Result<Digest> WriteTree(Scan* scan, const FileLinks& links, ChunkSink* sink);

// `folder` is its real path.
Result<void> WriteSeen(const Scan& scan, int64_t began_ns, std::string_view repository_id,
                       std::string_view folder, const Digest& tree, const std::string& file);

}  // namespace overcap
