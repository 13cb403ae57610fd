// SPDX-License-Identifier: Apache-2.0
// Reads an index from a repository: index objects first, then the footers of packs that none of them names.
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "snapshot/parallel.h"
#include "snapshot/repository/chunk_index_state.h"
#include "snapshot/repository/condemned_list.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/pack_footer.h"

namespace overcap {
namespace {

constexpr size_t kBytesPerChunk = 33;          // in a footer, at least
constexpr int64_t kIndexMost = 1'073'741'824;  // bytes that are read into memory
constexpr int kListings = 3;                   // of index/, when others are replaced while they are read

struct PackOfStore {
  int64_t size = 0;
  bool indexed = false;
};
using PacksOfStore = std::unordered_map<Digest, PackOfStore>;

// An error that says something of the object, not of the store.
bool ConcernsObject(const Error& error) {
  return error.code != ErrorCode::kUnavailable && error.code != ErrorCode::kInternal;
}

class IndexLoader {
 public:
  IndexLoader(const Repository& repository, const ChunkIndex::LoadOptions& options,
              ChunkIndex::LoadReport* report)
      : repository_(repository), options_(options), report_(*report) {}

  Result<ChunkIndex> Load() {
    OC_TRY(condemned, ListCondemned(repository_));
    condemned_ = condemned.Packs();
    condemned_.insert(options_.also_condemned.begin(), options_.also_condemned.end());
    OC_TRY_VOID(ListPacks());
    if (!options_.ignore_indexes) OC_TRY_VOID(ReadIndexes());
    OC_TRY_VOID(ReadFooters());
    report_.packs = index_.pack_count();
    return std::move(index_);
  }

 private:
  Result<void> ListPacks() {
    OC_TRY(found, repository_.store().ListAll(std::string(kPacksPrefix)));
    packs_.reserve(found.size());
    for (const StoredObjectInfo& info : found) {
      const std::optional<Digest> id = ParsePackKey(info.key);
      if (id) packs_.emplace(*id, PackOfStore{info.size});
      if (!id) report_.damage.push_back(StrCat("object '", info.key, "' is not named like a pack"));
    }
    return {};
  }

  // Listed again when one was gone before it was read: then another stands in its place.
  Result<void> ReadIndexes() {
    std::unordered_map<std::string, PackIndex> read;
    for (int listing = 0; listing < kListings; ++listing) {
      OC_TRY(found, repository_.store().ListAll(std::string(kIndexPrefix)));
      bool gone = false;
      for (const StoredObjectInfo& info : found) {
        if (read.contains(info.key)) continue;
        if (info.size > kIndexMost) {
          Damage(StrCat("index '", info.key, "' is too large"));
          damaged_indexes_.insert(info.key);
          continue;
        }
        OC_TRY(index, ReadIndex(info.key, &gone));
        if (index) read.emplace(info.key, *std::move(index));
      }
      if (!gone) break;
    }
    ReserveFor(read);
    for (auto& [key, index] : read) {
      report_.index_keys.push_back(key);
      AddIndex(key, std::move(index));
    }
    report_.index_objects = static_cast<int64_t>(report_.index_keys.size());
    report_.index_keys.insert(report_.index_keys.end(), damaged_indexes_.begin(), damaged_indexes_.end());
    return {};
  }

  Result<std::optional<PackIndex>> ReadIndex(const std::string& key, bool* gone) {
    Result<std::string> bytes = repository_.GetSealed("index", key);
    Result<PackIndex> index = bytes ? DecodePackIndex(*bytes) : Fail(bytes.error());
    if (index) return std::optional(*std::move(index));
    if (index.error().code == ErrorCode::kNotFound) {
      *gone = true;
    } else if (!ConcernsObject(index.error())) {
      return Fail(std::move(index).error());
    } else {
      Damage(StrCat("index '", key, "' is damaged: ", index.error().message));
      damaged_indexes_.insert(key);
    }
    return std::optional<PackIndex>();
  }

  void Damage(std::string line) {
    if (told_.insert(line).second) report_.damage.push_back(std::move(line));
  }

  void ReserveFor(const std::unordered_map<std::string, PackIndex>& read) {
    size_t bytes = 0;
    for (const auto& [key, index] : read) {
      for (const IndexedPack& pack : index.packs) {
        const auto it = packs_.find(pack.id);
        if (it == packs_.end() || it->second.indexed) continue;
        it->second.indexed = true;
        bytes += pack.footer.size();
      }
    }
    for (auto& [id, pack] : packs_) pack.indexed = false;
    index_.Reserve(bytes / kBytesPerChunk);
  }

  void AddIndex(const std::string& key, PackIndex index) {
    for (IndexedPack& pack : index.packs) {
      const auto it = packs_.find(pack.id);
      if (it == packs_.end()) {
        report_.missing_packs.push_back(pack.id);
      } else if (!it->second.indexed) {
        const Result<void> added = AddPack(pack, it->second.size);
        it->second.indexed = added.has_value();
        if (!added) Damage(StrCat("index '", key, "' is damaged: ", added.error().message));
      }
      pack.footer = {};
    }
  }

  Result<void> AddPack(const IndexedPack& pack, int64_t size_in_store) {
    OC_TRY(blocks, DecodePackFooter(pack.footer));
    const bool wrong_size = pack.size != size_in_store;
    if (wrong_size) {
      Damage(StrCat("pack '", PackKey(pack.id), "' has ", size_in_store, " bytes, not ", pack.size));
    }
    return index_.AddPack(pack.id, pack.size, pack.stored_footer_size, pack.kind, blocks,
                          wrong_size || condemned_.contains(pack.id));
  }

  Result<void> ReadFooters() {
    std::vector<Digest> todo;
    for (const auto& [id, pack] : packs_) {
      if (!pack.indexed) todo.push_back(id);
    }
    std::vector<std::optional<Result<PackFooter>>> footers(todo.size());
    OC_TRY_VOID(ParallelFor(todo.size(), [&](size_t i) -> Result<void> {
      footers[i] = ReadPackFooter(repository_, todo[i], packs_.at(todo[i]).size);
      if (!*footers[i] && !ConcernsObject(footers[i]->error())) return Fail(footers[i]->error());
      return {};
    }));
    for (size_t i = 0; i < todo.size(); ++i) TakeFooter(todo[i], *footers[i]);
    return {};
  }

  void TakeFooter(const Digest& id, const Result<PackFooter>& footer) {
    ++report_.footers_read;
    Result<void> added;
    if (footer) {
      added = index_.AddPack(id, packs_.at(id).size, footer->stored_size, footer->kind, footer->blocks,
                             condemned_.contains(id));
    } else if (footer.error().code != ErrorCode::kNotFound) {  // removed meanwhile
      added = Fail(footer.error());
    }
    if (!added) Damage(StrCat("pack '", PackKey(id), "': ", added.error().message));
    if (footer && added) report_.unindexed_packs.push_back(id);
  }

  const Repository& repository_;
  const ChunkIndex::LoadOptions& options_;
  ChunkIndex::LoadReport& report_;
  std::unordered_set<Digest> condemned_;
  PacksOfStore packs_;
  std::unordered_set<std::string> damaged_indexes_;
  std::unordered_set<std::string> told_;  // lines of damage
  ChunkIndex index_;
};

}  // namespace

void ChunkIndex::Reserve(size_t chunks) {
  state_->chunks.Reserve(chunks);
}

Result<ChunkIndex> ChunkIndex::Load(const Repository& repository, const LoadOptions& options,
                                    LoadReport* report) {
  LoadReport unasked;
  return IndexLoader(repository, options, report != nullptr ? report : &unasked).Load();
}

}  // namespace overcap
