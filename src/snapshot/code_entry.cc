// SPDX-License-Identifier: Apache-2.0
#include "snapshot/code_entry.h"

namespace overcap {
namespace {

constexpr uint32_t kOwnerMayExecute = 0100;

uint32_t ModeOf(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return 0600;
    case EntryKind::kLink:
      return 0777;
    case EntryKind::kExecutable:
    case EntryKind::kFolder:
      break;
  }
  return 0700;
}

SnapshotEntryType TypeOf(EntryKind kind) {
  if (kind == EntryKind::kFolder) return SnapshotEntryType::kFolder;
  return kind == EntryKind::kLink ? SnapshotEntryType::kSymlink : SnapshotEntryType::kFile;
}

EntryKind KindOf(const SnapshotEntry& entry) {
  if (entry.type == SnapshotEntryType::kFolder) return EntryKind::kFolder;
  if (entry.type == SnapshotEntryType::kSymlink) return EntryKind::kLink;
  return (entry.mode & kOwnerMayExecute) != 0 ? EntryKind::kExecutable : EntryKind::kFile;
}

}  // namespace

SnapshotEntry ToTreeEntry(const CodeEntry& entry) {
  SnapshotEntry made;
  made.path = entry.path;
  made.type = TypeOf(entry.kind);
  made.mode = ModeOf(entry.kind);
  if (entry.IsFile()) made.size = entry.size;
  made.content = entry.content;
  made.target = entry.target;
  return made;
}

CodeEntry FromTreeEntry(const SnapshotEntry& entry) {
  CodeEntry made{entry.path, KindOf(entry), entry.size, entry.content, {}};
  if (made.kind == EntryKind::kLink) {
    made.target = entry.target;
    made.size = static_cast<int64_t>(entry.target.size());
  }
  return made;
}

}  // namespace overcap
