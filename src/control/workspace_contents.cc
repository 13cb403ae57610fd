// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_contents.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace overcap {
namespace {

// So many entries below a folder are passed over one by one before the rest is jumped over: a page is read
// anyway.
constexpr int kWalkBeforeSeek = 512;
constexpr size_t kZeros = 65536;

bool IsBelow(std::string_view path, std::string_view folder) {
  if (folder.empty()) return !path.empty();
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

// Below every path that is not in the folder and comes after it: '/' is the lowest byte of trees.
std::string Behind(std::string_view folder) {
  return StrCat(folder, '\x01');
}

bool OnlyTimeDiffers(const SnapshotEntry& before, const SnapshotEntry& after) {
  return before.type == SnapshotEntryType::kFolder && after.type == SnapshotEntryType::kFolder &&
         before.mode == after.mode && before.uid == after.uid && before.gid == after.gid &&
         before.xattrs == after.xattrs;
}

}  // namespace

Result<SnapshotContents> SnapshotContents::Open(const Repository& repository) {
  OC_TRY(index, ChunkIndex::Load(repository));
  SnapshotContents contents;
  contents.index_ = std::make_unique<ChunkIndex>(std::move(index));
  contents.reader_ = std::make_unique<ChunkReader>(repository, *contents.index_);
  return contents;
}

GetMeta SnapshotContents::Getter() {
  return [reader = reader_.get()](const Digest& id) { return reader->Get(id); };
}

Result<SnapshotEntry> SnapshotContents::Find(const NamedSnapshot& snapshot, const std::string& path) {
  OC_TRY(entry, FindEntry(snapshot.record.tree, path, Getter()));
  if (entry) return std::move(*entry);
  return Fail(ErrorCode::kNotFound, StrCat("snapshot ", snapshot.ShortId(), " has no ", Quoted(path, 200)));
}

Result<void> SnapshotContents::List(const NamedSnapshot& snapshot, const std::string& path, bool deep,
                                    const OnEntry& on_entry) {
  OC_TRY(top, Find(snapshot, path));
  if (top.type != SnapshotEntryType::kFolder) return on_entry(top);
  TreeReader tree(snapshot.record.tree, Getter());
  OC_TRY_VOID(tree.Seek(path.empty() ? std::string() : path));
  std::string skipped;  // a folder whose content is passed over
  int walked = 0;
  for (;;) {
    OC_TRY(entry, tree.Next());
    if (entry == nullptr || (entry->path != path && !IsBelow(entry->path, path))) return {};
    if (entry->path == path) continue;
    if (!skipped.empty() && IsBelow(entry->path, skipped)) {
      if (++walked == kWalkBeforeSeek) OC_TRY_VOID(tree.Seek(Behind(skipped)));
      continue;
    }
    skipped.clear();
    walked = 0;
    if (!deep && entry->type == SnapshotEntryType::kFolder) skipped = entry->path;
    OC_TRY_VOID(on_entry(*entry));
  }
}

Result<void> SnapshotContents::Cat(const NamedSnapshot& snapshot, const std::string& path,
                                   const std::function<Result<void>(std::string_view)>& on_bytes) {
  OC_TRY(entry, Find(snapshot, path));
  if (entry.type == SnapshotEntryType::kFolder)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 200), " is a folder"),
                "'overcap workspace ls' lists it");
  if (entry.type == SnapshotEntryType::kSymlink) {
    return Fail(ErrorCode::kUsage,
                StrCat(Quoted(path, 200), " is a symbolic link to ", Quoted(entry.target, 200)));
  }
  std::vector<ContentPart> parts;
  if (entry.content.kind == FileContent::Kind::kChunk) {
    parts.push_back({ContentPart::Kind::kChunk, entry.size, entry.content.id});
  } else if (entry.content.kind == FileContent::Kind::kMap) {
    OC_TRY(all, ReadContentMaps(entry.content.id, entry.size, Getter()));
    parts = std::move(all);
  }
  const std::string zeros(kZeros, '\0');
  for (const ContentPart& part : parts) {
    if (part.kind == ContentPart::Kind::kHole) {
      for (int64_t left = part.length; left > 0; left -= static_cast<int64_t>(kZeros)) {
        const auto size = std::min(static_cast<size_t>(left), kZeros);
        OC_TRY_VOID(on_bytes(std::string_view(zeros).substr(0, size)));
      }
      continue;
    }
    OC_TRY(bytes, reader_->Get(part.id));
    OC_TRY_VOID(on_bytes(bytes));
  }
  return {};
}

Result<void> SnapshotContents::Diff(const NamedSnapshot& before, const NamedSnapshot& after,
                                    const std::function<Result<void>(const Change&)>& on_change) {
  if (before.record.tree == after.record.tree) return {};
  return DiffTrees(before.record.tree, after.record.tree, Getter(),
                   [&](const EntryChange& change) -> Result<void> {
                     const bool both = change.before != nullptr && change.after != nullptr;
                     if (both && OnlyTimeDiffers(*change.before, *change.after)) return {};
                     const SnapshotEntry& named = change.after != nullptr ? *change.after : *change.before;
                     const char what = both ? '~' : change.after != nullptr ? '+' : '-';
                     return on_change({named.path, what, change.before, change.after});
                   });
}

Result<std::string> PathInWorkspace(const std::string& typed, const std::string& folder,
                                    const std::string& current) {
  const bool inside = current == folder || IsBelow(current, folder);
  const std::string whole = typed.starts_with('/') ? typed : StrCat(inside ? current : folder, "/", typed);
  std::vector<std::string> parts;
  for (std::string& part : Split(whole, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  const std::string clean = "/" + Join(parts, "/");
  if (clean == folder) return std::string();
  if (!IsBelow(clean, folder))
    return Fail(ErrorCode::kUsage,
                StrCat(Quoted(typed, 200), " is not inside of the workspace '", folder, "'"));
  return clean.substr(folder.size() + 1);
}

}  // namespace overcap
