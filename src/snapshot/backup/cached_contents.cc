// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/cached_contents.h"

#include <algorithm>

#include "snapshot/backup/tree_order.h"

namespace overcap {
namespace {

bool AnyHas(const std::vector<NamedSnapshot>& snapshots, const Digest& tree) {
  return std::any_of(snapshots.begin(), snapshots.end(),
                     [&](const NamedSnapshot& snapshot) { return snapshot.record.tree == tree; });
}

Result<bool> HasMapped(const SeenEntry& file, const ContentLookup& lookup) {
  bool all = true;
  const GetMeta get = [&](const Digest& id) -> Result<std::string> {
    OC_TRY(has, lookup.has(id));
    if (!has) return Fail(ErrorCode::kNotFound, "a map of chunks is missing");
    return lookup.get(id);
  };
  const Result<std::vector<ContentPart>> parts = ReadContentMaps(file.content.id, file.stamp.size, get);
  if (!parts) {
    const ErrorCode code = parts.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
    return Fail(parts.error());
  }
  for (const ContentPart& part : *parts) {
    if (part.kind != ContentPart::Kind::kChunk) continue;
    OC_TRY(has, lookup.has(part.id));
    all = all && has;
  }
  return all;
}

Result<bool> HasContent(const SeenEntry& file, const ContentLookup& lookup) {
  switch (file.content.kind) {
    case FileContent::Kind::kEmpty:
      return true;
    case FileContent::Kind::kChunk:
      return lookup.has(file.content.id);
    case FileContent::Kind::kMap:
      return HasMapped(file, lookup);
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

Result<std::vector<ScannedEntry*>> LackingContents(Scan* scan, const ContentLookup& lookup) {
  std::vector<ScannedEntry*> lacking;
  TreeOrder order(scan);
  for (TreeOrder::Item item = order.Next(); item.entry != nullptr; item = order.Next()) {
    if (!item.entry->seen.IsFile() || item.entry->fate != EntryFate::kSame) continue;
    OC_TRY(has, HasContent(item.entry->seen, lookup));
    if (!has) lacking.push_back(item.entry);
  }
  return lacking;
}

}  // namespace overcap
