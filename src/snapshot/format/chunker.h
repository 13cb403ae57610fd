// SPDX-License-Identifier: Apache-2.0
// Where the content of a file is cut into chunks (docs/formats/snapshot.md, "Chunks"). Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace overcap {

struct ChunkSizes {
  int64_t min = 262'144;
  int64_t average = 1'048'576;
  int64_t max = 4'194'304;
  int64_t segment = 67'108'864;

  bool operator==(const ChunkSizes&) const = default;
};

// Length of the first chunk of `data`, which begins at the start of a chunk and holds sizes.max bytes of its
// segment or, if fewer, all that is left of it.
int64_t NextChunk(std::string_view data, const ChunkSizes& sizes);

}  // namespace overcap
