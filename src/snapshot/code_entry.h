// SPDX-License-Identifier: Apache-2.0
// What captured code knows of a file, folder or link (docs/formats/snapshot.md, "Captured code"): less than a
// workspace does, so that the same code has the same tree wherever it stands.
#pragma once

#include <cstdint>
#include <string>

#include "snapshot/format/entry.h"

namespace overcap {

enum class EntryKind : char { kFile = 'f', kExecutable = 'x', kLink = 'l', kFolder = 'd' };

struct CodeEntry {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  int64_t size = 0;  // of the content, or of the target; folders have none
  FileContent content;
  std::string target;  // links

  bool IsFile() const { return kind == EntryKind::kFile || kind == EntryKind::kExecutable; }
  bool operator==(const CodeEntry&) const = default;
};

SnapshotEntry ToTreeEntry(const CodeEntry& entry);
CodeEntry FromTreeEntry(const SnapshotEntry& entry);

}  // namespace overcap
