// SPDX-License-Identifier: Apache-2.0
// The footer of one pack, read from the store.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct PackFooter {
  ChunkKind kind = ChunkKind::kData;
  int64_t stored_size = 0;
  std::vector<PackedBlock> blocks;
};

// `size` is that of the object. Checked against the pack's id. kNotFound when it is gone, kCorrupt (naming
// the pack's key) when it is damaged.
Result<PackFooter> ReadPackFooter(const Repository& repository, const Digest& pack, int64_t size);

}  // namespace overcap
