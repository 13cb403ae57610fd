// SPDX-License-Identifier: Apache-2.0
// Beside the cache of a folder: a restore has begun there and has not ended (docs/formats/snapshot.md, "Local
// knowledge"). Files that it has finished can be told from others without reading them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "snapshot/sha256.h"

namespace overcap {

struct ResumeMarker {
  std::string boot_id;  // after a restart what was written may not have reached the disk
  Digest tree;
  std::string folder;    // real path of the target
  int64_t began_ns = 0;  // wall time

  std::string Encode() const;
  static std::optional<ResumeMarker> Decode(std::string_view text);
  bool SameWork(const ResumeMarker& other) const {
    return boot_id == other.boot_id && tree == other.tree && folder == other.folder && !boot_id.empty();
  }
};

std::string ResumeMarkerPath(const std::string& seen_file);

}  // namespace overcap
