// SPDX-License-Identifier: Apache-2.0
// The cache that makes a capture of an unchanged folder cheap (docs/formats/snapshot.md, "Captured
// code").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/code_entry.h"
#include "snapshot/sha256.h"
#include "snapshot/walk.h"

namespace overcap {

struct CaptureIndex {
  int64_t began_ns = 0;  // wall time at which the capture began; see RacilyClean
  Digest tree;
  std::string folder;
  std::vector<CodeEntry> entries;  // in the order of a tree
  std::vector<FileStamp> stamps;   // one per entry
};

std::string EncodeIndex(const CaptureIndex& index);

// nullopt when it is not exactly what EncodeIndex writes, for whatever reason.
std::optional<CaptureIndex> DecodeIndex(std::string_view bytes);

// Whether a file with this stamp may have been changed after a capture that began at `began_ns` read it,
// without the stamp telling: its times are too near to that.
bool RacilyClean(const FileStamp& stamp, int64_t began_ns);

}  // namespace overcap
