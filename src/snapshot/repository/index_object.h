// SPDX-License-Identifier: Apache-2.0
// Writing of index objects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"

namespace overcap {

constexpr size_t kIndexesMost = 32;  // more are merged by the next writer

// A pack of the index as an index object has it.
IndexedPack IndexedPackOf(const ChunkIndex& index, uint32_t pack);

// Puts one index object that names these packs and stands in the place of the objects `replaced`, which are
// then removed. How many bytes that were, at least.
Result<int64_t> PutIndex(const Repository& repository, std::vector<IndexedPack> packs,
                         const std::vector<std::string>& replaced);

}  // namespace overcap
