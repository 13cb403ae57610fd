// SPDX-License-Identifier: Apache-2.0
// Maps: of which chunks and holes a large file consists (docs/formats/snapshot.md). Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/sha256.h"

namespace overcap {

struct ContentPart {
  enum class Kind : char { kChunk = 'c', kHole = 'h', kMap = 'm' };
  Kind kind = Kind::kChunk;
  int64_t length = 0;
  Digest id;  // zero for holes

  bool operator==(const ContentPart&) const = default;
};

constexpr size_t kMapParts = 4096;
constexpr int kMapLevels = 4;
constexpr size_t kContentParts = 4'194'304;  // of one file, over all its maps: 200 MB in memory

std::string EncodeContentMap(int level, const std::vector<ContentPart>& parts);

struct ContentMap {
  int level = 0;
  std::vector<ContentPart> parts;
};
Result<ContentMap> DecodeContentMap(std::string_view bytes);

// Stores a meta chunk and says its id; reads one.
using PutMeta = std::function<Result<Digest>(std::string_view bytes)>;
using GetMeta = std::function<Result<std::string>(const Digest& id)>;

// Chunks and holes of a whole file -> the id of its top map. kUsage when there are more than kContentParts.
Result<Digest> WriteContentMaps(const std::vector<ContentPart>& parts, const PutMeta& put);
// And back, all levels. kCorrupt unless the lengths add up to `size`.
Result<std::vector<ContentPart>> ReadContentMaps(const Digest& top, int64_t size, const GetMeta& get);

}  // namespace overcap
