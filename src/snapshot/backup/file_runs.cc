// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/file_runs.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace overcap {
namespace {

void Append(std::vector<FileRun>* runs, FileRun run) {
  if (run.length <= 0) return;
  if (run.hole && run.length < kHoleLeast) run.hole = false;
  if (!runs->empty() && runs->back().hole == run.hole) {
    runs->back().length += run.length;
  } else {
    runs->push_back(run);
  }
}

}  // namespace

std::vector<FileRun> FindRuns(int fd, int64_t size) {
  std::vector<FileRun> runs;
  int64_t at = 0;
  while (at < size) {
    int64_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0) data = errno == ENXIO ? size : at;  // ENXIO: nothing but a hole up to the end
    data = std::clamp(data, at, size);
    Append(&runs, {at, data - at, true});
    if (data == size) break;
    int64_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole <= data) hole = size;  // cannot tell, or changed meanwhile
    hole = std::min(hole, size);
    Append(&runs, {data, hole - data, false});
    at = hole;
  }
  return runs;
}

std::vector<FileRun> CutRuns(const std::vector<FileRun>& runs, int64_t segment) {
  std::vector<FileRun> pieces;
  for (const FileRun& run : runs) {
    if (run.hole) {
      pieces.push_back(run);
      continue;
    }
    for (int64_t at = 0; at < run.length; at += segment) {
      pieces.push_back({run.offset + at, std::min(segment, run.length - at), false});
    }
  }
  return pieces;
}

}  // namespace overcap
