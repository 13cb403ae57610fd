// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/code_pin.h"

#include <unordered_set>

#include "base/text.h"
#include "snapshot/format/bytes.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_writer_state.h"
#include "snapshot/repository/index_object.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/relied_check.h"

namespace overcap {
namespace {

constexpr size_t kCheckSize = sizeof(Digest::bytes);

// Collects the packs in which a tree is found.
class PackFinder {
 public:
  // `own` are packs that `known` does not have.
  PackFinder(const std::vector<IndexedPack>& own, const ChunkIndex& known) : own_(own), known_(known) {}

  Result<void> AddOwn() {
    for (const IndexedPack& pack : own_) {
      OC_TRY(blocks, DecodePackFooter(pack.footer));
      OC_TRY_VOID(own_index_.AddPack(pack.id, pack.size, pack.stored_footer_size, pack.kind, blocks, false));
    }
    return {};
  }

  // False when the chunk is in no pack that stays.
  bool Note(const Digest& chunk) {
    if (const std::optional<ChunkPlace> place = own_index_.Find(chunk)) {
      used_own_.insert(place->pack);
      return true;
    }
    const std::optional<ChunkPlace> place = known_.Find(chunk);
    if (!place || known_.pack(place->pack).condemned) return false;
    used_known_.insert(place->pack);
    return true;
  }

  std::vector<IndexedPack> Found() const {
    std::vector<IndexedPack> packs;
    for (const uint32_t pack : used_own_) packs.push_back(own_[pack]);
    for (const uint32_t pack : used_known_) packs.push_back(IndexedPackOf(known_, pack));
    return packs;
  }

 private:
  const std::vector<IndexedPack>& own_;
  const ChunkIndex& known_;
  ChunkIndex own_index_;
  std::unordered_set<uint32_t> used_own_, used_known_;
};

}  // namespace

Result<std::vector<CodePin>> ListCodePins(const Repository& repository) {
  OC_TRY(found, repository.store().ListAll(std::string(kCodePrefix)));
  std::vector<CodePin> pins;
  for (const StoredObjectInfo& info : found) {
    if (const std::optional<Digest> tree = ParseCodeKey(info.key)) {
      pins.push_back({*tree, info.size, info.modified_us});
    }
  }
  return pins;
}

std::string EncodeCodePin(std::vector<IndexedPack> packs) {
  std::string bytes = EncodePackIndex({.replaces = {}, .packs = std::move(packs)});
  AppendDigest(&bytes, Sha256Of(bytes));
  return bytes;
}

Result<std::vector<IndexedPack>> DecodeCodePin(std::string_view bytes) {
  const size_t size = bytes.size() < kCheckSize ? 0 : bytes.size() - kCheckSize;
  if (DigestBytes(Sha256Of(bytes.substr(0, size))) != bytes.substr(size)) {
    return Fail(ErrorCode::kCorrupt, "its bytes have changed");
  }
  OC_TRY(index, DecodePackIndex(bytes.substr(0, size)));
  return std::move(index.packs);
}

Result<ChunkIndex> LoadPinnedIndex(const Repository& repository, const Digest& tree) {
  OC_TRY(bytes, repository.store().Get(CodeKey(tree)));
  OC_TRY(packs, DecodeCodePin(bytes));
  ChunkIndex index;
  for (const IndexedPack& pack : packs) {
    OC_TRY(blocks, DecodePackFooter(pack.footer));
    OC_TRY_VOID(index.AddPack(pack.id, pack.size, pack.stored_footer_size, pack.kind, blocks, false));
  }
  return index;
}

// After Finish. kConflict when a chunk is in no pack that stays.
Result<std::vector<IndexedPack>> ChunkWriter::PacksOf(const Digest& tree) {
  OC_TRY(known, state_->Index());
  const std::vector<IndexedPack> own = state_->assembly.Packs();
  PackFinder finder(own, *known);
  OC_TRY_VOID(finder.AddOwn());
  const auto get = [&](const Digest& id) {
    Result<std::string> page = GetMeta(id);
    if (!page && page.error().code == ErrorCode::kCorrupt) {  // who tries again stores it again
      if (const auto place = known->Find(id)) {
        (void)CondemnDamagedPack(state_->repository, known->pack(place->pack).id);
      }
    }
    return page;
  };
  OC_TRY_VOID(CheckTreeIsKept(tree, get, [&](const Digest& id) { return finder.Note(id); }));
  return finder.Found();
}

Result<WriterTotals> ChunkWriter::Pin(const Digest& tree) {
  OC_TRY(totals, Finish());
  OC_TRY(packs, PacksOf(tree));
  const std::string bytes = EncodeCodePin(std::move(packs));
  Store& store = state_->repository.store();
  const std::string key = CodeKey(tree);
  OC_TRY_VOID(Publish(
      tree, [&] { return store.Put(key, bytes); },
      [&]() -> Result<void> {
        // Unless another who captured the same code has put his own meanwhile.
        const Result<std::string> now = store.Get(key);
        return now && *now == bytes ? store.Remove(key) : Result<void>();
      }));
  totals.stored_bytes += static_cast<int64_t>(bytes.size());
  return totals;
}

}  // namespace overcap
