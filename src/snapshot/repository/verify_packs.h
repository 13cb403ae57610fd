// SPDX-License-Identifier: Apache-2.0
// Looks at every pack of a repository.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/live_chunks.h"

namespace overcap {

struct PackVerdict {
  std::vector<std::string> damage;  // one line each with the pack's key
  ChunkSet bad;                     // chunks that readers would look for and cannot have
  int64_t bytes_read = 0;
};

// Head, footer and size of every pack; `read_data`: all blocks and chunks too. `progress` from any thread.
Result<PackVerdict> VerifyPacks(const Repository& repository, const ChunkIndex& index, bool read_data,
                                const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace overcap
