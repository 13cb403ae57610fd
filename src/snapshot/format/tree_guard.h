// SPDX-License-Identifier: Apache-2.0
// What a page alone cannot know: that the folders above it are there, and what its hard links lead to.
#pragma once

#include <string>

#include "base/result.h"
#include "snapshot/format/file_marks.h"
#include "snapshot/format/tree_walk.h"

namespace overcap {

class TreeGuard {
 public:
  // `get` outlives it.
  TreeGuard(const Digest& tree, const GetMeta* get) : lookup_(tree, get) {}

  // For each page that is read, forward, whatever is left out between. Looks other pages up where it must:
  // for folders above a page that was jumped to, for hard links to other pages.
  Result<void> Check(const TreePage& page);

 private:
  bool IsKnownFolder(std::string_view folder) const;
  Result<const SnapshotEntry*> Find(std::string_view path);
  Result<void> CheckFoldersAbove(std::string_view path);
  Result<void> CheckHardLink(const SnapshotEntry& link, const TreePage& page);

  TreeWalk lookup_;
  FileMarks marks_;    // files of pages that were looked up for hard links
  std::string known_;  // all folders above this path are there
  bool known_is_folder_ = true;
};

}  // namespace overcap
