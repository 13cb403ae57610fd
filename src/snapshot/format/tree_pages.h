// SPDX-License-Identifier: Apache-2.0
// Trees as pages and nodes (docs/formats/snapshot.md, "Trees"). Pure but for the functions given.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/format/entry.h"

namespace overcap {

struct TreeTotals {
  int64_t entries = 0;
  int64_t files = 0;  // hard links not counted twice
  int64_t bytes = 0;
};

// Entries in order (PathBefore of snapshot/path_order.h), the folder itself first -> pages, through `put`.
// Finish() once: the id of the tree. An entry that no tree may have is refused (kInternal; kUsage when its
// attributes are too large) and not part of it; the next may follow.
class TreeBuilder {
 public:
  explicit TreeBuilder(PutMeta put);
  ~TreeBuilder();
  Result<void> Add(const SnapshotEntry& entry);
  Result<Digest> Finish();
  const TreeTotals& totals() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Entries of a tree that cannot be read: all from `from` on that are before `to` (nullopt: to the end).
struct TreeGap {
  std::string from;
  std::optional<std::string> to;
  int64_t entries = 0;
  Error error;
};

// Entries of a tree in order, checked: kCorrupt before anything of a page is handed out in which the order, a
// path, a folder that is missing, a hard link to what is no earlier file, or a sum is not allowed; and from
// then on.
class TreeReader {
 public:
  TreeReader(const Digest& tree, GetMeta get);
  ~TreeReader();
  // From now on a page that is missing or damaged is told and passed over; only the root must be there. A
  // folder that was in one, and in which something is left, comes with mode 0700 and nothing else; a hard
  // link may lead to a file that was in one. All that is handed out is checked as before.
  void SkipDamage(std::function<void(const TreeGap&)> on_gap);
  // Goes to the first entry that is not before `path`; pages between are not read.
  Result<void> Seek(std::string_view path);
  // nullptr after the last; valid until the next call.
  Result<const SnapshotEntry*> Next();
  // As the root says: a page of which it is not true is refused when it is read. Not to be trusted before
  // that.
  Result<TreeTotals> Totals();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The entry of that path, or nullopt; reads one page per level.
Result<std::optional<SnapshotEntry>> FindEntry(const Digest& tree, std::string_view path, const GetMeta& get);

struct EntryChange {
  const SnapshotEntry* before = nullptr;  // nullptr: added
  const SnapshotEntry* after = nullptr;   // nullptr: removed
};
// In order; pages and nodes that both have are not read, wherever they stand. What is read is checked as by
// TreeReader. Stops with the callback's error.
Result<void> DiffTrees(const Digest& before, const Digest& after, const GetMeta& get,
                       const std::function<Result<void>(const EntryChange&)>& on_change);

// Every id of a chunk that the tree needs: pages, nodes, maps and data; data may come more than once. A page
// that was visited for an earlier tree (enter_meta says false) is not gone into again.
struct TreeVisitor {
  std::function<bool(const Digest& meta)> enter_meta;  // pages, nodes and maps; false: known already
  std::function<void(const Digest& data)> on_data;
};
Result<void> VisitTree(const Digest& tree, const GetMeta& get, const TreeVisitor& visitor);

}  // namespace overcap
