// SPDX-License-Identifier: Apache-2.0
// A pack that is full and only has to be put.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/repository/own_meta.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct FinishedPack {
  PackHead head;
  std::vector<PackedBlock> blocks;                         // stored sizes as they will be, with the seal
  std::vector<std::shared_ptr<const std::string>> stored;  // compressed, not yet sealed
  std::vector<std::shared_ptr<OwnMetaBlock>> meta;         // one per block in packs of meta chunks
  int64_t bytes = 0;
};

// Seals it in an encrypted repository (its blocks then have the checks of what is stored), and puts it.
// Durable when it returns.
Result<IndexedPack> PutPack(const Repository& repository, FinishedPack* pack);

}  // namespace overcap
