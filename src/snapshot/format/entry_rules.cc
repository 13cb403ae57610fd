// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/entry_rules.h"

#include "snapshot/format/block_codec.h"
#include "snapshot/format/tree_limits.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

bool HasNul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

bool XattrsAreRight(const std::vector<ExtendedAttribute>& xattrs) {
  const std::string* before = nullptr;
  size_t names = 0;
  for (const ExtendedAttribute& xattr : xattrs) {
    if (xattr.name.empty() || xattr.name.size() > kXattrNameMost || HasNul(xattr.name)) return false;
    names += xattr.name.size() + 1;
    if (xattr.value.size() > kXattrValueMost || names > kXattrNamesMost) return false;
    if (before != nullptr && *before >= xattr.name) return false;
    before = &xattr.name;
  }
  return true;
}

bool ContentIsRight(const SnapshotEntry& entry) {
  switch (entry.content.kind) {
    case FileContent::Kind::kEmpty:
      return entry.size == 0 && entry.content.id == Digest();
    case FileContent::Kind::kChunk:
      return entry.size > 0 && entry.size <= kChunkMost;
    case FileContent::Kind::kMap:
      return entry.size > 0;
  }
  return false;
}

bool TargetIsRight(const SnapshotEntry& entry) {
  if (entry.target.size() > kPathMost) return false;
  switch (entry.type) {
    case SnapshotEntryType::kSymlink:
      return !entry.target.empty() && !HasNul(entry.target);
    case SnapshotEntryType::kHardLink:
      return PathIsClean(entry.target) && PathBefore(entry.target, entry.path);
    default:
      return entry.target.empty();
  }
}

}  // namespace

const char* EntryProblem(const SnapshotEntry& entry) {
  if (entry.path.empty() && entry.type != SnapshotEntryType::kFolder) return "the root is no folder";
  if (entry.mode > 07777) return "it has a mode that cannot be";
  if (entry.type == SnapshotEntryType::kSymlink && entry.mode != 0777) return "it has a mode that cannot be";
  if (!ContentIsRight(entry)) return "its size and its content do not fit";
  if (!entry.IsFile() && (entry.size != 0 || entry.unsteady)) return "it has a content, and is no file";
  if (!TargetIsRight(entry)) return "it leads to what cannot be";
  if (!XattrsAreRight(entry.xattrs)) return "it has extended attributes that cannot be";
  return nullptr;
}

const char* PathProblem(std::string_view path) {
  if (path.size() > kPathMost) return "the path is too long";
  return path.empty() || PathIsClean(path) ? nullptr : "the path is not allowed";
}

const char* PathStepProblem(std::string_view before, bool before_is_folder, std::string_view path,
                            size_t common) {
  if (path.size() > kPathMost) return "the path is too long";
  if (common == path.size()) return "it is out of order";
  if (common < before.size() && PathRank(before[common]) >= PathRank(path[common]))
    return "it is out of order";
  // Whole components of what they share are right already.
  const size_t slash = common == 0 ? std::string_view::npos : path.rfind('/', common - 1);
  if (!PathIsClean(path.substr(slash == std::string_view::npos ? 0 : slash + 1)))
    return "the path is not allowed";
  // All folders above `before` are known, so the parent must be one of them, or `before` itself.
  const size_t parent = ParentPath(path).size();
  if (parent == 0) return nullptr;
  const bool above = parent < before.size() && before[parent] == '/';
  const bool itself = parent == before.size() && before_is_folder;
  return parent <= common && (above || itself) ? nullptr : "the folder it is in is not there";
}

}  // namespace overcap
