// SPDX-License-Identifier: Apache-2.0
// Captured code, opened for reading.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "snapshot/code_entry.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/store.h"

namespace overcap {

class CodeTree {
 public:
  // What finds its chunks: the packs that its pin names, or the whole repository. The first is cheap, but may
  // know packs that a prune has put others in the place of.
  enum class Sight { kPin, kRepository };

  // kNotFound without a pin.
  static Result<CodeTree> Open(const SnapshotStore& store, const Digest& tree, Sight sight);

  // All but the folder itself. Here and below kCorrupt when something is missing or damaged.
  Result<std::vector<CodeEntry>> Entries() const;
  Result<std::optional<CodeEntry>> Find(std::string_view path) const;
  Result<int64_t> CountEntries() const;

  const SnapshotStore& store() const { return store_; }
  const ChunkIndex& index() const { return *index_; }
  Result<std::string> GetMeta(const Digest& id) const;
  // A chunk is missing or damaged; from any thread. Pages and maps are noted by GetMeta.
  void NoteDamage(const Digest& chunk) const;
  // The next capture stores again what was noted.
  void DropDamaged() const;

 private:
  struct Damage {
    std::mutex mutex;  // guards chunks
    std::vector<Digest> chunks;
  };

  CodeTree(const SnapshotStore& store, const Digest& tree, ChunkIndex index);
  overcap::GetMeta Getter() const;

  const SnapshotStore& store_;
  Digest tree_;
  std::unique_ptr<const ChunkIndex> index_;
  std::unique_ptr<ChunkReader> reader_;
  std::unique_ptr<Damage> damage_ = std::make_unique<Damage>();
};

// Acts on a tree; a second time, with the whole repository in sight, when the first time it is kCorrupt.
template <typename Act>
auto WithCodeTree(const SnapshotStore& store, std::string_view id, const Act& act)
    -> decltype(act(std::declval<const CodeTree&>(), true)) {
  OC_TRY(digest, ParseStoredId(id, "tree"));
  Result<CodeTree> pinned = CodeTree::Open(store, digest, CodeTree::Sight::kPin);
  if (!pinned && pinned.error().code != ErrorCode::kCorrupt) return Fail(std::move(pinned).error());
  if (pinned) {
    auto done = act(*pinned, false);
    if (done || done.error().code != ErrorCode::kCorrupt) return done;
  }
  OC_TRY(whole, CodeTree::Open(store, digest, CodeTree::Sight::kRepository));
  return act(whole, true);
}

}  // namespace overcap
