// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/index_object.h"

#include "base/text.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {

IndexedPack IndexedPackOf(const ChunkIndex& index, uint32_t pack) {
  const KnownPack& known = index.pack(pack);
  return {.id = known.id,
          .kind = known.kind,
          .size = known.size,
          .stored_footer_size = known.stored_footer_size,
          .footer = EncodePackFooter(index.Footer(pack))};
}

Result<int64_t> PutIndex(const Repository& repository, std::vector<IndexedPack> packs,
                         const std::vector<std::string>& replaced) {
  PackIndex index;
  index.packs = std::move(packs);
  for (const std::string& key : replaced) {
    if (const std::optional<Digest> id = ParseIndexKey(key)) index.replaces.push_back(*id);
  }
  const std::string plain = EncodePackIndex(index);
  OC_TRY(id, repository.PutSealed("index", std::string(kIndexPrefix), plain));
  for (const std::string& key : replaced) {
    if (key != IndexKey(id)) OC_TRY_VOID(repository.store().Remove(key));
  }
  return static_cast<int64_t>(plain.size());
}

}  // namespace overcap
