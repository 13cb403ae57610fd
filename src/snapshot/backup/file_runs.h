// SPDX-License-Identifier: Apache-2.0
// Where a file has data and where holes (docs/formats/snapshot.md, "Chunks").
#pragma once

#include <cstdint>
#include <vector>

namespace overcap {

struct FileRun {
  int64_t offset = 0;
  int64_t length = 0;
  bool hole = false;

  bool operator==(const FileRun&) const = default;
};

constexpr int64_t kHoleLeast = 4096;

// All of an open file of that size, in order. A file system that does not tell has no holes.
std::vector<FileRun> FindRuns(int fd, int64_t size);

// Runs of data cut into pieces of at most `segment` bytes, each of which is chunked on its own. Pure.
std::vector<FileRun> CutRuns(const std::vector<FileRun>& runs, int64_t segment);

}  // namespace overcap
