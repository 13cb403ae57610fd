// SPDX-License-Identifier: Apache-2.0
#include "snapshot/code_tree.h"

#include "base/text.h"
#include "snapshot/repository/code_pin.h"

namespace overcap {

CodeTree::CodeTree(const SnapshotStore& store, const Digest& tree, ChunkIndex index)
    : store_(store),
      tree_(tree),
      index_(std::make_unique<const ChunkIndex>(std::move(index))),
      reader_(std::make_unique<ChunkReader>(store.repository(), *index_)) {}

Result<CodeTree> CodeTree::Open(const SnapshotStore& store, const Digest& tree, Sight sight) {
  Result<ChunkIndex> index =
      sight == Sight::kPin ? LoadPinnedIndex(store.repository(), tree) : ChunkIndex::Load(store.repository());
  if (index) return CodeTree(store, tree, *std::move(index));
  if (index.error().code != ErrorCode::kNotFound) return Fail(std::move(index).error());
  return Fail(ErrorCode::kNotFound,
              StrCat("tree '", tree.Hex(), "' is not in the store '", store.Folder(), "'"));
}

Result<std::string> CodeTree::GetMeta(const Digest& id) const {
  Result<std::string> bytes = reader_->Get(id);
  if (bytes) return bytes;
  const ErrorCode code = bytes.error().code;
  if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) return bytes;
  NoteDamage(id);
  return Fail(ErrorCode::kCorrupt, std::move(bytes).error().message);
}

GetMeta CodeTree::Getter() const {
  return [this](const Digest& id) { return GetMeta(id); };
}

Result<std::vector<CodeEntry>> CodeTree::Entries() const {
  TreeReader reader(tree_, Getter());
  std::vector<CodeEntry> entries;
  while (true) {
    OC_TRY(entry, reader.Next());
    if (entry == nullptr) return entries;
    if (!entry->path.empty()) entries.push_back(FromTreeEntry(*entry));
  }
}

Result<std::optional<CodeEntry>> CodeTree::Find(std::string_view path) const {
  OC_TRY(entry, FindEntry(tree_, path, Getter()));
  if (!entry) return std::optional<CodeEntry>();
  return std::optional(FromTreeEntry(*entry));
}

Result<int64_t> CodeTree::CountEntries() const {
  OC_TRY(totals, TreeReader(tree_, Getter()).Totals());
  return totals.entries;
}

void CodeTree::NoteDamage(const Digest& chunk) const {
  const std::lock_guard lock(damage_->mutex);
  damage_->chunks.push_back(chunk);
}

void CodeTree::DropDamaged() const {
  const std::lock_guard lock(damage_->mutex);
  std::vector<Digest> packs;
  for (const Digest& chunk : damage_->chunks) {
    if (const std::optional<ChunkPlace> place = index_->Find(chunk)) {
      packs.push_back(index_->pack(place->pack).id);
    }
  }
  store_.DropDamaged(packs);
}

}  // namespace overcap
