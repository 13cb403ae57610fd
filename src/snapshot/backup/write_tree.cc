// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/write_tree.h"

#include <deque>

#include "snapshot/backup/tree_order.h"
#include "snapshot/format/tree_pages.h"

namespace overcap {
namespace {

void SetAttributes(const SeenEntry& seen, SnapshotEntry* entry) {
  entry->type = seen.type;
  entry->mode = seen.stamp.mode;
  entry->uid = seen.stamp.uid;
  entry->gid = seen.stamp.gid;
  entry->mtime_ns = seen.stamp.mtime_ns;
  entry->size = seen.IsFile() ? seen.stamp.size : 0;
  entry->content = seen.content;
  entry->target = seen.target;
  entry->unsteady = (seen.flags & kSeenUnsteady) != 0;
  if (!seen.xattrs.empty() || !entry->xattrs.empty()) {
    entry->xattrs = DecodeXattrs(seen.xattrs).value_or(std::vector<ExtendedAttribute>());
  }
}

// The path of one entry after the other, made by changing that of the one before.
class GrowingPath {
 public:
  void Set(const ScannedFolder* folder, std::string_view name, std::string* path) {
    if (folder != folder_) {
      folder_ = folder;
      *path = folder == nullptr ? std::string() : folder->Path();
      if (!path->empty()) path->push_back('/');
      length_ = path->size();
    }
    path->resize(length_);
    path->append(name);
  }

 private:
  const ScannedFolder* folder_ = nullptr;
  size_t length_ = 0;
};

}  // namespace

Result<Digest> WriteTree(Scan* scan, const FileLinks& links, ChunkSink* sink) {
  TreeBuilder builder([sink](std::string_view bytes) { return sink->Add(ChunkKind::kMeta, bytes); });
  TreeOrder order(scan);
  SnapshotEntry entry;
  GrowingPath path;
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    path.Set(item.folder, item.entry->seen.name, &entry.path);
    SetAttributes(item.entry->seen, &entry);
    if (item.link != nullptr) {
      if (const ReadJob* first = links.FirstOf(item.entry)) {
        entry.type = SnapshotEntryType::kHardLink;
        entry.target = first->folder->PathOf(*first->entry);
      }
    }
    OC_TRY_VOID(builder.Add(entry));
  }
  return builder.Finish();
}

Result<void> WriteSeen(const Scan& scan, int64_t began_ns, std::string_view repository_id,
                       std::string_view folder, const Digest& tree, const std::string& file) {
  SeenWriter writer(began_ns, repository_id, folder, scan.root.seen);
  std::deque<const ScannedFolder*> waiting{scan.root.below};
  for (; !waiting.empty(); waiting.pop_front()) {
    const ScannedFolder& at = *waiting.front();
    uint64_t count = 0;
    for (const ScannedEntry& entry : at.entries) count += entry.fate != EntryFate::kGone ? 1 : 0;
    writer.BeginFolder(count);
    for (const ScannedEntry& entry : at.entries) {
      if (entry.fate == EntryFate::kGone) continue;
      writer.Add(entry.seen);
      if (entry.below != nullptr) waiting.push_back(entry.below);
    }
  }
  return writer.Finish(tree, file);
}

}  // namespace overcap
