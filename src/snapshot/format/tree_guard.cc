// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/tree_guard.h"

#include "base/text.h"

namespace overcap {
namespace {

// What a hard link says of itself is what its file says, but for path, type and target.
bool IsLinkTo(const SnapshotEntry& link, const SnapshotEntry& file) {
  return file.type == SnapshotEntryType::kFile && file.mode == link.mode && file.uid == link.uid &&
         file.gid == link.gid && file.mtime_ns == link.mtime_ns && file.size == link.size &&
         file.content == link.content && file.unsteady == link.unsteady && file.xattrs == link.xattrs;
}

}  // namespace

bool TreeGuard::IsKnownFolder(std::string_view folder) const {
  if (!known_.starts_with(folder)) return false;
  return known_.size() == folder.size() ? known_is_folder_ : known_[folder.size()] == '/';
}

Result<const SnapshotEntry*> TreeGuard::Find(std::string_view path) {
  OC_TRY_VOID(lookup_.Seek(path));
  const bool found = lookup_.place() == TreeWalk::Place::kEntry && lookup_.path() == path;
  return found ? &lookup_.entry() : nullptr;
}

Result<void> TreeGuard::CheckFoldersAbove(std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    const std::string_view folder = path.substr(0, slash);
    if (IsKnownFolder(folder)) continue;
    const Result<const SnapshotEntry*> entry = Find(folder);
    if (!entry && IsLost(entry.error())) {
      lost_folders_.emplace_back(folder);
      continue;
    }
    if (!entry) return Fail(entry.error());
    if (*entry == nullptr || (*entry)->type != SnapshotEntryType::kFolder) {
      return Fail(ErrorCode::kCorrupt,
                  StrCat("the tree is damaged: ", Quoted(path), " is in no folder of it"));
    }
  }
  return {};
}

Result<void> TreeGuard::CheckHardLink(const SnapshotEntry& link, const TreePage& page) {
  const SnapshotEntry* file = page.begin() + page.LowerBound(link.target);
  if (file == page.end() || file->path != link.target) {
    if (marks_.Has(link)) return {};
    Result<const SnapshotEntry*> elsewhere = Find(link.target);
    if (!elsewhere && IsLost(elsewhere.error())) return {};
    if (!elsewhere) return Fail(std::move(elsewhere).error());
    file = *elsewhere;
    // Links to one page often come together, and if not, the next to it need not read it again.
    if (file != nullptr) {
      for (const SnapshotEntry& entry : lookup_.page()) {
        if (entry.type == SnapshotEntryType::kFile) marks_.Add(entry);
      }
    }
  }
  if (file != nullptr && IsLinkTo(link, *file)) return {};
  return Fail(ErrorCode::kCorrupt, StrCat("the tree is damaged: ", Quoted(link.path), " is a hard link to ",
                                          Quoted(link.target), ", which is no such file"));
}

Result<void> TreeGuard::Check(const TreePage& page) {
  lost_folders_.clear();
  OC_TRY_VOID(CheckFoldersAbove(page.begin()->path));
  if (page.has_hard_links) {
    for (const SnapshotEntry& entry : page) {
      if (entry.type == SnapshotEntryType::kHardLink) OC_TRY_VOID(CheckHardLink(entry, page));
    }
  }
  const SnapshotEntry& last = *(page.end() - 1);
  known_ = last.path;
  known_is_folder_ = last.type == SnapshotEntryType::kFolder;
  return {};
}

}  // namespace overcap
