// SPDX-License-Identifier: Apache-2.0
// One entry of a tar file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/format/entry.h"

namespace overcap {

// A stretch of a sparse file that has data; what is between is holes.
struct TarRun {
  int64_t offset = 0;
  int64_t length = 0;

  bool operator==(const TarRun&) const = default;
};

struct TarItem {
  // path and target as they stand in the tar, unchecked; content is not set.
  SnapshotEntry entry;
  std::string special;       // what it is when no snapshot can have it: "a device", "a pipe"; else ""
  bool sparse = false;       // only `runs` of it are stored
  std::vector<TarRun> runs;  // ascending, apart, within entry.size

  bool operator==(const TarItem&) const = default;
};

// Stretches of a sparse file that are kept at most: 16 MiB of memory.
constexpr size_t kTarRunsMost = 1 << 20;

}  // namespace overcap
