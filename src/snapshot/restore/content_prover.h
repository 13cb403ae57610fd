// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "snapshot/format/content_map.h"
#include "snapshot/restore/content_cursor.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// Reads a file to see whether it is what an entry says. One per thread.
class ContentProver {
 public:
  // `get` outlives it.
  explicit ContentProver(const GetMeta& get) : get_(get) {}
  // Also false when the file or the map of its chunks cannot be read.
  bool IsContentOf(int fd, const WantedEntry& wanted);

 private:
  bool SamePart(int fd, const PlacedPart& placed);
  bool AllZero(size_t size) const;

  const GetMeta& get_;
  std::string buffer_;
};

}  // namespace overcap
