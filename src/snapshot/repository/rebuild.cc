// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "snapshot/repository/index_object.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/upkeep.h"

namespace overcap {
namespace {

// Packs whose footer is damaged but that an index still knows: their blocks may be fine.
Result<void> AddKnownToIndexesOnly(const Repository& repository, std::vector<IndexedPack>* packs) {
  std::unordered_set<Digest> have;
  for (const IndexedPack& pack : *packs) have.insert(pack.id);
  OC_TRY(index, ChunkIndex::Load(repository));
  for (uint32_t pack = 0; pack < index.pack_count(); ++pack) {
    if (!have.contains(index.pack(pack).id)) packs->push_back(IndexedPackOf(index, pack));
  }
  return {};
}

}  // namespace

Result<int64_t> RebuildIndex(const Repository& repository) {
  OC_TRY_VOID(repository.CheckConfig(true));
  // Listed first: what others put from here on stays.
  OC_TRY(indexes, repository.store().ListAll(std::string(kIndexPrefix)));
  ChunkIndex::LoadOptions options;
  options.ignore_indexes = true;
  ChunkIndex::LoadReport report;
  OC_TRY(index, ChunkIndex::Load(repository, options, &report));
  std::vector<IndexedPack> packs;
  for (uint32_t pack = 0; pack < index.pack_count(); ++pack) packs.push_back(IndexedPackOf(index, pack));
  if (!report.damage.empty()) OC_TRY_VOID(AddKnownToIndexesOnly(repository, &packs));
  const auto count = static_cast<int64_t>(packs.size());
  std::vector<std::string> replaced;
  for (const StoredObjectInfo& info : indexes) replaced.push_back(info.key);
  OC_TRY_VOID(PutIndex(repository, std::move(packs), replaced));
  return count;
}

}  // namespace overcap
