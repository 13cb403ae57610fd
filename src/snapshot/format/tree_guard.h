// SPDX-License-Identifier: Apache-2.0
// What a page alone cannot know: that the folders above it are there, and what its hard links lead to.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/format/file_marks.h"
#include "snapshot/format/tree_walk.h"

namespace overcap {

// Whether something is not there or not as it should be, and trying again will not help.
inline bool IsDamage(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kNotFound;
}

class TreeGuard {
 public:
  // `get` outlives it.
  TreeGuard(const Digest& tree, const GetMeta* get) : lookup_(tree, get) {}

  // For each page that is read, forward, whatever is left out between. Looks other pages up where it must:
  // for folders above a page that was jumped to, for hard links to other pages.
  Result<void> Check(const TreePage& page);

  // From now on pages that cannot be looked up are trusted to hold what they must.
  void AllowLost() { allow_lost_ = true; }
  // The folders above the page checked last that are in such pages, the highest first.
  const std::vector<std::string>& lost_folders() const { return lost_folders_; }

 private:
  bool IsLost(const Error& error) const { return allow_lost_ && IsDamage(error); }
  bool IsKnownFolder(std::string_view folder) const;
  Result<const SnapshotEntry*> Find(std::string_view path);
  Result<void> CheckFoldersAbove(std::string_view path);
  Result<void> CheckHardLink(const SnapshotEntry& link, const TreePage& page);

  TreeWalk lookup_;
  FileMarks marks_;    // files of pages that were looked up for hard links
  std::string known_;  // all folders above this path are there
  bool known_is_folder_ = true;
  bool allow_lost_ = false;
  std::vector<std::string> lost_folders_;
};

}  // namespace overcap
