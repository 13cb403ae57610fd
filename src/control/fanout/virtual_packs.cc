// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/virtual_packs.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

bool IsDataPack(const std::string& key, std::span<const std::string_view> pieces) {
  if (!key.starts_with(kPacksPrefix) || pieces.size() < 3) return false;
  const Result<PackHead> head = PackHead::Decode(pieces.front());
  return head && head->kind == ChunkKind::kData;
}

}  // namespace

Result<std::shared_ptr<VirtualPacks>> VirtualPacks::Open(std::shared_ptr<Store> inner, ChunkSource* source) {
  std::shared_ptr<VirtualPacks> store(new VirtualPacks(std::move(inner), source));
  OC_TRY(found, store->inner_->ListAll(std::string(kIndexPrefix)));
  for (const StoredObjectInfo& info : found) {
    OC_TRY(bytes, store->inner_->Get(info.key));
    const Result<PackIndex> index = DecodePackIndex(bytes);
    if (!index) continue;  // nothing that it names is there then
    for (const IndexedPack& pack : index->packs) {
      if (pack.kind == ChunkKind::kData) OC_TRY_VOID(store->Add(pack));
    }
  }
  return store;
}

Result<void> VirtualPacks::Add(const IndexedPack& indexed) {
  Pack pack;
  pack.size = indexed.size;
  if (source_ != nullptr) {
    OC_TRY(blocks, DecodePackFooter(indexed.footer));
    int64_t offset = kPackHeadSize;
    for (const PackedBlock& block : blocks) {
      if (block.codec != BlockCodec::kStored || block.chunks.size() != 1 ||
          block.chunks[0].size != block.stored_size)
        return Fail(ErrorCode::kCorrupt, "a pack of a fan-out holds more than single chunks");
      pack.blocks.push_back({offset, {block.chunks[0].id, block.chunks[0].size}});
      offset += block.stored_size;
    }
  }
  const std::lock_guard lock(mutex_);
  packs_.insert_or_assign(PackKey(indexed.id), std::move(pack));
  return {};
}

Result<void> VirtualPacks::Put(const std::string& key, std::span<const std::string_view> pieces,
                               PutMode mode) {
  if (!IsDataPack(key, pieces)) return inner_->Put(key, pieces, mode);
  Pack pack;
  for (const std::string_view piece : pieces) pack.size += static_cast<int64_t>(piece.size());
  const std::lock_guard lock(mutex_);
  packs_.insert_or_assign(key, std::move(pack));
  return {};
}

Result<std::vector<fanout::WantedChunk>> VirtualPacks::ChunksIn(const Pack& pack, int64_t offset,
                                                                int64_t limit) const {
  auto at = std::lower_bound(pack.blocks.begin(), pack.blocks.end(), offset,
                             [](const BlockAt& block, int64_t wanted) { return block.offset < wanted; });
  std::vector<fanout::WantedChunk> chunks;
  int64_t left = limit;
  if (at == pack.blocks.end() || at->offset != offset) left = -1;
  for (; at != pack.blocks.end() && left > 0; ++at) {
    chunks.push_back(at->chunk);
    left -= at->chunk.size;
  }
  if (left != 0) return Fail(ErrorCode::kInternal, "only whole blocks of a virtual pack can be read");
  return chunks;
}

Result<void> VirtualPacks::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                     std::string* out) const {
  std::vector<fanout::WantedChunk> chunks;
  {
    const std::lock_guard lock(mutex_);
    const auto found = packs_.find(object.key);
    if (found == packs_.end()) return inner_->GetIntoIf(object, offset, limit, out);
    if (source_ == nullptr)
      return Fail(ErrorCode::kNotFound, StrCat("the content of pack '", object.key, "' is not kept"));
    OC_TRY(wanted, ChunksIn(found->second, offset, limit));
    chunks = std::move(wanted);
  }
  out->resize(static_cast<size_t>(limit));
  return source_->Fetch(chunks, out->data());
}

Result<StoredObjectInfo> VirtualPacks::Stat(const std::string& key) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = packs_.find(key); found != packs_.end()) {
      return StoredObjectInfo{.key = key, .size = found->second.size};
    }
  }
  return inner_->Stat(key);
}

// In one page: there are few packs in a repository that is used for this alone.
Result<StorePage> VirtualPacks::List(const std::string& prefix, const std::string& next) const {
  if (!std::string_view(prefix).starts_with(kPacksPrefix)) return inner_->List(prefix, next);
  OC_TRY(real, inner_->ListAll(prefix));
  StorePage page;
  page.objects = std::move(real);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, pack] : packs_) {
      if (key.starts_with(prefix)) page.objects.push_back({.key = key, .size = pack.size});
    }
  }
  std::sort(page.objects.begin(), page.objects.end(),
            [](const StoredObjectInfo& a, const StoredObjectInfo& b) { return a.key < b.key; });
  return page;
}

Result<void> VirtualPacks::Remove(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (packs_.erase(key) > 0) return {};
  }
  return inner_->Remove(key);
}

}  // namespace overcap
