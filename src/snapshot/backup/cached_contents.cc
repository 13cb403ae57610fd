// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/cached_contents.h"

#include <algorithm>

#include "snapshot/backup/tree_order.h"
#include "snapshot/format/content_map.h"

namespace overcap {
namespace {

bool AnyHas(const std::vector<NamedSnapshot>& snapshots, const Digest& tree) {
  return std::any_of(snapshots.begin(), snapshots.end(),
                     [&](const NamedSnapshot& snapshot) { return snapshot.record.tree == tree; });
}

// Maps are read: one may have outlived its chunks.
Result<bool> HasMapped(const SeenEntry& file, ChunkWriter* writer) {
  bool all = true;
  const GetMeta get = [&](const Digest& id) -> Result<std::string> {
    OC_TRY(has, writer->Has(id));
    if (!has) return Fail(ErrorCode::kNotFound, "a map of chunks is missing");
    return writer->GetMeta(id);
  };
  const Result<std::vector<ContentPart>> parts = ReadContentMaps(file.content.id, file.stamp.size, get);
  if (!parts) {
    const ErrorCode code = parts.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
    return Fail(parts.error());
  }
  for (const ContentPart& part : *parts) {
    if (part.kind != ContentPart::Kind::kChunk) continue;
    OC_TRY(has, writer->Has(part.id));
    all = all && has;
  }
  return all;
}

Result<bool> HasContent(const SeenEntry& file, ChunkWriter* writer) {
  switch (file.content.kind) {
    case FileContent::Kind::kEmpty:
      return true;
    case FileContent::Kind::kChunk:
      return writer->Has(file.content.id);
    case FileContent::Kind::kMap:
      return HasMapped(file, writer);
  }
  return false;
}

}  // namespace

Result<bool> HasSnapshotOf(const Repository& repository, const std::string& workspace, const Digest& tree) {
  const Result<NamedSnapshot> newest = repository.Find(workspace, "latest");
  if (newest && newest->record.tree == tree) return true;
  OC_TRY(own, repository.Snapshots(workspace));
  if (AnyHas(own, tree)) return true;
  OC_TRY(all, repository.Snapshots(""));
  return AnyHas(all, tree);
}

Result<bool> LacksContents(Scan* scan, const std::function<Result<bool>(const Digest&)>& has) {
  TreeOrder order(scan);
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    const SeenEntry& seen = item.entry->seen;
    const bool asks = seen.IsFile() && item.entry->fate == EntryFate::kSame;
    if (!asks || seen.content.kind == FileContent::Kind::kEmpty) continue;
    OC_TRY(there, has(seen.content.id));
    if (!there) return true;
  }
  return false;
}

Result<int64_t> DistrustCache(Scan* scan, ChunkWriter* writer) {
  int64_t missing = 0;
  TreeOrder order(scan);
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    if (!item.entry->seen.IsFile() || item.entry->fate != EntryFate::kSame) continue;
    OC_TRY(has, HasContent(item.entry->seen, writer));
    if (has) continue;
    item.entry->fate = EntryFate::kRead;
    ++missing;
  }
  return missing;
}

}  // namespace overcap
