// SPDX-License-Identifier: Apache-2.0
// Meta chunks in memory, and trees in them, for the tests of what reads and writes trees.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "snapshot/format/tree_pages.h"

namespace overcap {

class MetaMemory {
 public:
  PutMeta Put() {
    return [this](std::string_view bytes) -> Result<Digest> {
      const Digest id = Sha256Of(bytes);
      chunks[id] = bytes;
      ++puts;
      return id;
    };
  }
  GetMeta Get() {
    return [this](const Digest& id) -> Result<std::string> {
      ++gets;
      const auto found = chunks.find(id);
      if (found == chunks.end()) return Fail(ErrorCode::kNotFound, StrCat("no chunk '", id.Hex(), "'"));
      return found->second;
    };
  }

  std::unordered_map<Digest, std::string> chunks;
  int64_t puts = 0, gets = 0;
};

inline SnapshotEntry FolderEntry(std::string path) {
  SnapshotEntry entry;
  entry.path = std::move(path);
  entry.type = SnapshotEntryType::kFolder;
  entry.mode = 0755;
  return entry;
}

// A file of one chunk, or empty.
inline SnapshotEntry FileEntry(std::string path, std::string_view content = "content") {
  SnapshotEntry entry;
  entry.path = std::move(path);
  entry.mode = 0644;
  entry.uid = entry.gid = 1000;
  entry.mtime_ns = 1'763'210'000'123'456'789;
  entry.size = static_cast<int64_t>(content.size());
  if (!content.empty()) entry.content = {FileContent::Kind::kChunk, Sha256Of(content)};
  return entry;
}

inline SnapshotEntry SymlinkEntry(std::string path, std::string target) {
  SnapshotEntry entry;
  entry.path = std::move(path);
  entry.type = SnapshotEntryType::kSymlink;
  entry.mode = 0777;
  entry.target = std::move(target);
  return entry;
}

inline SnapshotEntry HardLinkEntry(std::string path, const SnapshotEntry& file) {
  SnapshotEntry entry = file;
  entry.type = SnapshotEntryType::kHardLink;
  entry.target = file.path;
  entry.path = std::move(path);
  return entry;
}

inline Result<Digest> BuildTree(const std::vector<SnapshotEntry>& entries, MetaMemory* memory) {
  TreeBuilder builder(memory->Put());
  for (const SnapshotEntry& entry : entries) OC_TRY_VOID(builder.Add(entry));
  return builder.Finish();
}

inline Result<std::vector<SnapshotEntry>> ReadTree(const Digest& tree, MetaMemory* memory) {
  TreeReader reader(tree, memory->Get());
  std::vector<SnapshotEntry> entries;
  while (true) {
    OC_TRY(entry, reader.Next());
    if (entry == nullptr) return entries;
    entries.push_back(*entry);
  }
}

// `folders` folders of `files` files each, and the folder above them.
inline std::vector<SnapshotEntry> ManyEntries(int folders, int files) {
  const auto number = [](int value) { return std::to_string(100'000 + value); };
  std::vector<SnapshotEntry> entries = {FolderEntry("")};
  for (int folder = 0; folder < folders; ++folder) {
    const std::string path = "folder-" + number(folder);
    entries.push_back(FolderEntry(path));
    for (int file = 0; file < files; ++file)
      entries.push_back(FileEntry(path + "/file-" + number(file) + ".cc"));
  }
  return entries;
}

}  // namespace overcap
