// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/prune_plan.h"

#include <algorithm>

namespace overcap {

std::vector<PackUse> MeasureUse(const ChunkIndex& index, const ChunkSet& live) {
  std::vector<PackUse> use(index.pack_count());
  index.ForEach([&](const Digest& id, const ChunkPlace& place) {
    PackUse& pack = use[place.pack];
    pack.raw_bytes += place.size;
    if (!live.Has(id)) return;
    const std::optional<ChunkPlace> home = index.Find(id);
    if (home->pack == place.pack && home->block == place.block && home->chunk == place.chunk) {
      pack.used_bytes += place.size;
    }
  });
  return use;
}

PrunePlan PlanPrune(const ChunkIndex& index, const std::vector<PackUse>& use, double repack_below,
                    const std::unordered_set<Digest>& settled) {
  PrunePlan plan;
  std::vector<uint32_t> small[2];
  for (uint32_t pack = 0; pack < index.pack_count(); ++pack) {
    const KnownPack& known = index.pack(pack);
    if (settled.contains(known.id)) continue;
    const PackUse& of = use[pack];
    if (of.used_bytes == 0) {
      plan.remove.push_back(pack);
    } else if (static_cast<double>(of.used_bytes) < repack_below * static_cast<double>(of.raw_bytes)) {
      plan.copy.push_back(pack);
    } else if (known.size < kSmallPack) {
      small[known.kind == ChunkKind::kData ? 0 : 1].push_back(pack);
    } else {
      plan.keep.push_back(pack);
    }
  }
  for (const std::vector<uint32_t>& packs : small) {
    std::vector<uint32_t>& to = packs.size() > kSmallPacksMost ? plan.copy : plan.keep;
    to.insert(to.end(), packs.begin(), packs.end());
  }
  return plan;
}

std::vector<uint32_t> PacksThatMayGo(const ChunkIndex& index, const ChunkSet& live,
                                     const std::unordered_set<Digest>& candidates) {
  std::vector<uint32_t> go;
  for (uint32_t pack = 0; pack < index.pack_count(); ++pack) {
    if (!candidates.contains(index.pack(pack).id)) continue;
    bool needed = false;
    for (uint32_t block = 0; block < index.pack(pack).blocks.size(); ++block) {
      index.ForEachInBlock(pack, block, [&](const Digest& id, const ChunkPlace&) {
        needed = needed || (live.Has(id) && !index.HasForWriters(id));
      });
    }
    if (!needed) go.push_back(pack);
  }
  return go;
}

bool IsDead(const WriterSigns& signs, int64_t dead_after_us) {
  return signs.surely_gone || signs.same_beat_us >= dead_after_us || signs.behind_us >= dead_after_us;
}

bool MustWaitFor(const WriterRecord& writer, const std::string& condemned_id) {
  if (writer.prune) return false;
  return std::find(writer.knows.begin(), writer.knows.end(), condemned_id) == writer.knows.end();
}

}  // namespace overcap
