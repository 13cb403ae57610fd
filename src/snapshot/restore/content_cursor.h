// SPDX-License-Identifier: Apache-2.0
// The chunks and holes of a file one after the other, however many there are, without holding them all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

struct PlacedPart {
  ContentPart part;  // never a map
  int64_t offset = 0;
};

class ContentCursor {
 public:
  ContentCursor(const WantedEntry& file, const GetMeta& get) : file_(file), get_(get) {}

  // nullopt after the last. kCorrupt when the maps do not say what the file's size says.
  Result<std::optional<PlacedPart>> Next();

 private:
  struct Level {
    ContentMap map;
    size_t next = 0;
    int64_t left = 0;  // bytes of the file that the rest of the map should have
  };

  Result<void> Enter(const Digest& id, int64_t length);
  tl::unexpected<Error> Damaged(const Digest& map) const;

  const WantedEntry& file_;
  const GetMeta& get_;
  bool begun_ = false;
  int64_t offset_ = 0;
  size_t parts_ = 0;
  std::vector<Level> levels_;
};

}  // namespace overcap
