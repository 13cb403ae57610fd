// SPDX-License-Identifier: Apache-2.0
// A place in a tree that goes forward entry by entry, or past pages and nodes without reading them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/format/tree_page.h"

namespace overcap {

// What is read is held to what the node above says of it: first path, level, sums, and nothing behind the
// first path of its neighbour. So the order of all entries is sure whatever is left out, and no id can lead
// in circles.
class TreeWalk {
 public:
  enum class Place { kEnd, kUnread, kEntry };

  // `get` outlives it.
  TreeWalk(const Digest& tree, const GetMeta* get);

  Place place() const;
  // Path of the entry, or of the first in the page or node that is not read yet.
  std::string_view path() const;

  // At a page or node that is not read yet.
  const Digest& id() const { return Current().id; }
  int level() const { return frames_.back().node.level - 1; }  // that of the root counts as the highest
  int64_t entries() const { return Current().totals.entries; }
  bool AtRoot() const { return frames_.size() == 1; }
  Result<void> Open();  // reads it: goes to its first entry or child. Stays where it is when it fails.
  // All in the page or node is before this path; nullopt: it is the last.
  std::optional<std::string_view> Bound() const;

  // At an entry.
  const SnapshotEntry& entry() const { return page_.slots[at_]; }
  const TreePage& page() const { return page_; }

  void Skip();      // past the entry, or past all of what is not read yet
  void SkipPage();  // at an entry: past its page

  // To the first entry that is not before `path`, forward or back. It is read when it is in the page that
  // `path` would be in.
  Result<void> Seek(std::string_view path);

  // Of the root, once it is read.
  const std::optional<TreeTotals>& totals() const { return totals_; }

 private:
  struct Frame {
    TreeNode node;
    size_t at = 0;                     // the child that it is in or in front of
    std::optional<std::string> bound;  // all in it is before this path
  };

  const TreeChild& Current() const { return frames_.back().node.children[frames_.back().at]; }
  bool Covers(const Frame& frame, std::string_view path) const;
  Result<void> OpenPage(std::string_view bytes);
  Result<void> OpenNode(std::string_view bytes);
  Result<void> Fits(std::string_view first, std::string_view last, const TreeTotals& totals) const;
  void Advance();

  const GetMeta* get_;
  std::vector<Frame> frames_;  // the first stands for what is above the root
  TreePage page_;
  size_t at_ = 0;
  bool in_page_ = false;
  std::optional<TreeTotals> totals_;
};

}  // namespace overcap
