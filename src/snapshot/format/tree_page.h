// SPDX-License-Identifier: Apache-2.0
// The bytes of one page or node of a tree (docs/formats/snapshot.md, "Trees"). Pure; decoders take any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/entry.h"
#include "snapshot/format/tree_pages.h"

namespace overcap {

// Collects the entries of a page. The rules of entry_rules.h are the caller's business.
class PageEncoder {
 public:
  // `common`: bytes that the path shares with the one before, also across pages. False, with nothing added,
  // when the entry is larger than any may be.
  bool Add(const SnapshotEntry& entry, size_t common);
  bool Ended() const { return ended_; }  // after this entry the page ends
  bool Empty() const { return count_ == 0; }
  const std::string& first() const { return first_; }
  const TreeTotals& totals() const { return totals_; }
  std::string Take();  // its bytes; empty again after it

 private:
  std::string body_;
  std::string first_;
  size_t count_ = 0;
  size_t size_ = 0;  // of the entries with their whole paths
  bool ended_ = false;
  TreeTotals totals_;
};

struct TreeChild {
  std::string first;  // path of its first entry
  Digest id;
  TreeTotals totals;
};

// Collects the children of a node.
class NodeEncoder {
 public:
  void Add(const TreeChild& child);
  bool Ended() const { return ended_; }
  bool Empty() const { return count_ == 0; }
  const std::string& first() const { return first_; }
  const TreeTotals& totals() const { return totals_; }
  std::string Take(int level);

 private:
  std::string body_;
  std::string first_;
  size_t count_ = 0;
  bool ended_ = false;
  TreeTotals totals_;
};

// 0 for a page, 1 and more for a node, -1 for neither.
int TreeLevelOf(std::string_view bytes);

// A page that was read. Its entries are right each by itself, in order, and in folders of the page or above
// its first entry; what stands outside of it was not looked at.
struct TreePage {
  std::vector<SnapshotEntry> slots;  // kept from page to page: their memory is used again
  size_t held = 0;                   // bytes that it may have come to
  size_t count = 0;
  bool has_hard_links = false;
  TreeTotals totals;

  const SnapshotEntry* begin() const { return slots.data(); }
  const SnapshotEntry* end() const { return slots.data() + count; }
  void Reset();
  // The first that is not before `path`.
  size_t LowerBound(std::string_view path) const;
};
Result<void> DecodeTreePage(std::string_view bytes, TreePage* page);

struct TreeNode {
  int level = 0;
  std::vector<TreeChild> children;
  TreeTotals totals;

  // The last child that does not begin behind `path`; 0 when all do.
  size_t ChildOf(std::string_view path) const;
};
Result<TreeNode> DecodeTreeNode(std::string_view bytes);

// False, with `sum` of no use, when a sum is larger than any may be.
bool AddTotals(TreeTotals* sum, const TreeTotals& more);

}  // namespace overcap
