// SPDX-License-Identifier: Apache-2.0
// A repository whose packs of data stand nowhere: index objects name them, and their chunks come from
// somewhere else (docs/formats/fanout.md).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "snapshot/format/pack_format.h"
#include "stores/store.h"

namespace overcap {

class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  // The chunks one after the other into `out`, which has the room. From several threads at once. An error
  // when one of them cannot be had, or is wrong.
  virtual Result<void> Fetch(const std::vector<fanout::WantedChunk>& chunks, char* out) = 0;
};

// All but packs of data is `inner`'s. A pack of data that is put is only remembered; what is in it is gone.
class VirtualPacks : public Store {
 public:
  // `source` may be null: then no pack of data can be read.
  static Result<std::shared_ptr<VirtualPacks>> Open(std::shared_ptr<Store> inner, ChunkSource* source);

  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override { return inner_->CleanUp(older_than_us); }
  std::string Location() const override { return inner_->Location(); }

 private:
  struct BlockAt {
    int64_t offset = 0;
    fanout::WantedChunk chunk;
  };
  struct Pack {
    int64_t size = 0;
    std::vector<BlockAt> blocks;  // empty where there is no source
  };

  VirtualPacks(std::shared_ptr<Store> inner, ChunkSource* source)
      : inner_(std::move(inner)), source_(source) {}
  Result<void> Add(const IndexedPack& pack);
  Result<std::vector<fanout::WantedChunk>> ChunksIn(const Pack& pack, int64_t offset, int64_t limit) const;

  const std::shared_ptr<Store> inner_;
  ChunkSource* const source_;
  mutable std::mutex mutex_;  // guards packs_, which only grows while packs are put
  std::map<std::string, Pack, std::less<>> packs_;
};

}  // namespace overcap
