// SPDX-License-Identifier: Apache-2.0
// Finds what a capture of a folder consists of.
#pragma once

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "base/result.h"
#include "snapshot/code_entry.h"
#include "snapshot/ignore.h"

namespace overcap {

// What stat says of a file; a file with an unchanged stamp is taken for unchanged.
struct FileStamp {
  int64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint64_t inode = 0;
  uint32_t mode = 0;

  bool operator==(const FileStamp&) const = default;
  static FileStamp Of(const struct stat& status);
};

struct FoundEntry {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  FileStamp stamp;  // folders have none
};

struct WalkResult {
  std::vector<FoundEntry> entries;  // in the order of a tree
  std::vector<std::string> notes;   // what was skipped, one line each
};

struct WalkLimit {
  int64_t files = INT64_MAX, bytes = INT64_MAX;
};

// `skip` is a path in the folder that is left out, or "". Entries that vanish meanwhile are left out; one
// that cannot be looked at is an error that names it. kUsage as soon as there is more than `limit`.
Result<WalkResult> Walk(int folder_fd, IgnoreStack ignore, const std::string& skip,
                        const WalkLimit& limit = {});

}  // namespace overcap
