// SPDX-License-Identifier: Apache-2.0
// What a tree knows of one file, folder or link (docs/formats/snapshot.md, "Trees").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/sha256.h"

namespace overcap {

enum class SnapshotEntryType : char { kFile = 'f', kFolder = 'd', kSymlink = 'l', kHardLink = 'h' };

struct FileContent {
  enum class Kind : char { kEmpty = '0', kChunk = 'c', kMap = 'm' };
  Kind kind = Kind::kEmpty;
  Digest id;  // of the chunk or the map; zero when empty

  bool operator==(const FileContent&) const = default;
};

struct ExtendedAttribute {
  std::string name;
  std::string value;

  bool operator==(const ExtendedAttribute&) const = default;
};

struct SnapshotEntry {
  std::string path;  // relative; "" is the folder itself
  SnapshotEntryType type = SnapshotEntryType::kFile;
  uint32_t mode = 0;  // 12 bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  int64_t mtime_ns = 0;
  int64_t size = 0;                       // files and hard links
  FileContent content;                    // files and hard links
  std::string target;                     // symlinks: where it points; hard links: path of the first
  std::vector<ExtendedAttribute> xattrs;  // by name
  bool unsteady = false;                  // the file changed while it was read, three times

  bool IsFile() const { return type == SnapshotEntryType::kFile || type == SnapshotEntryType::kHardLink; }
  bool operator==(const SnapshotEntry&) const = default;
};

}  // namespace overcap
