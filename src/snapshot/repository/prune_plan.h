// SPDX-License-Identifier: Apache-2.0
// What a prune decides (docs/formats/snapshot.md, "Writers and prune"). Pure.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/live_chunks.h"
#include "snapshot/repository/presence_record.h"

namespace overcap {

// Raw bytes of one pack. A chunk that is in several packs is used in the one in which readers find it.
struct PackUse {
  int64_t raw_bytes = 0;
  int64_t used_bytes = 0;
};
std::vector<PackUse> MeasureUse(const ChunkIndex& index, const ChunkSet& live);

struct PrunePlan {
  std::vector<uint32_t> remove;  // nothing in them is used
  std::vector<uint32_t> copy;    // little is, or they are small and many
  std::vector<uint32_t> keep;
};
constexpr int64_t kSmallPack = 1'048'576;
constexpr size_t kSmallPacksMost = 64;  // of one kind; more become few
// Packs in `settled` are somebody's business already.
PrunePlan PlanPrune(const ChunkIndex& index, const std::vector<PackUse>& use, double repack_below,
                    const std::unordered_set<Digest>& settled);

// Step 4: of the packs `candidates`, those that may go. A pack with a chunk in use that is in no pack that
// stays is not among them. All condemned packs are marked in the index.
std::vector<uint32_t> PacksThatMayGo(const ChunkIndex& index, const ChunkSet& live,
                                     const std::unordered_set<Digest>& candidates);

// What is known of a writer that others wait for.
struct WriterSigns {
  int64_t same_beat_us = 0;  // for how long the beat has not changed, by our clock
  int64_t behind_us = 0;     // how much older than an object just put its own is, by the store's clock
  bool surely_gone = false;  // the process is no more
};
bool IsDead(const WriterSigns& signs, int64_t dead_after_us);

// Whether packs condemned by object `condemned_id` must wait for this writer.
bool MustWaitFor(const WriterRecord& writer, const std::string& condemned_id);

}  // namespace overcap
