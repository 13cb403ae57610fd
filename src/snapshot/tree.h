// SPDX-License-Identifier: Apache-2.0
// The listing of a folder (docs/formats/code-store.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/path_order.h"
#include "snapshot/sha256.h"

namespace overcap {

enum class EntryKind : char { kFile = 'f', kExecutable = 'x', kLink = 'l', kFolder = 'd' };

struct TreeEntry {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  int64_t size = 0;  // of the content; folders have none
  Digest content;

  bool operator==(const TreeEntry&) const = default;
};

// `entries` are in order (PathBefore).
std::string EncodeTree(const std::vector<TreeEntry>& entries);

// kCorrupt unless `text` is exactly what EncodeTree gives for a folder that can exist. `id` is for the
// message.
Result<std::vector<TreeEntry>> DecodeTree(std::string_view text, std::string_view id);

}  // namespace overcap
