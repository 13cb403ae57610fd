// SPDX-License-Identifier: Apache-2.0
// Makes a folder from captured code.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/store.h"

namespace overcap {

struct MaterialiseOptions {
  bool use_spare = true;
  // Asked between files, from the calling thread only; true: kConflict, and nothing is left. May be empty.
  std::function<bool()> cancelled = {};
};

struct MaterialiseReport {
  bool from_spare = false;
  int64_t files = 0;  // written now; none when a spare was taken
  int64_t bytes = 0;
};

// Makes `target`, which must not exist, in a folder that does; it appears complete or not at all. Files are
// the caller's own: 0600, or 0700 when executable. Not synced: after a power cut make it again. kConflict
// when `target` exists, kNotFound without the tree, kCorrupt when something it names is missing or not what
// was stored, to the last bit: then the message has path and chunk, and the pack with the damage is
// condemned, so that the next capture of the code stores it again.
Result<MaterialiseReport> Materialise(const SnapshotStore& store, std::string_view tree_id,
                                      const std::string& target, const MaterialiseOptions& options = {});

// Has at least `count` (at most 4) copies of the tree ready, so that Materialise takes one with a single
// rename. Those of the two trees prepared last are kept. Call it when there is time: it costs a copy each.
Result<void> PrepareSpare(const SnapshotStore& store, std::string_view tree_id, int count = 1);

}  // namespace overcap
