// SPDX-License-Identifier: Apache-2.0
// Which files a tree is known to have, in 32 bytes each at most: what a hard link says of its file can be
// checked without reading that file's page again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/format/entry.h"

namespace overcap {

class FileMarks {
 public:
  // The file that `entry` is, or that it is a hard link to.
  void Add(const SnapshotEntry& entry);
  bool Has(const SnapshotEntry& entry);

 private:
  // Half a SHA-256 of all that is said of the file: two that are not the same cannot be made to have one.
  struct Mark {
    uint64_t first = 0, second = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark MarkOf(const SnapshotEntry& entry);
  Mark* Slot(const Mark& mark);
  void Grow();

  std::vector<Mark> slots_;  // a power of two; all zero: free
  size_t count_ = 0;
  std::string buffer_;
};

}  // namespace overcap
