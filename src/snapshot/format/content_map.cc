// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/content_map.h"

#include "base/text.h"
#include "snapshot/format/block_codec.h"
#include "snapshot/format/bytes.h"

namespace overcap {
namespace {

using Kind = ContentPart::Kind;

constexpr size_t kLeastPart = 2;  // bytes that a hole takes

tl::unexpected<Error> Damaged(std::string_view why) {
  return Fail(ErrorCode::kCorrupt, StrCat("the map of a file is damaged: ", why));
}

bool KindFits(char kind, int level) {
  if (level > 0) return kind == static_cast<char>(Kind::kMap);
  return kind == static_cast<char>(Kind::kChunk) || kind == static_cast<char>(Kind::kHole);
}

bool ReadPart(ByteReader* reader, int level, ContentPart* part) {
  const char kind = reader->Byte();
  if (!KindFits(kind, level)) return false;
  part->kind = static_cast<Kind>(kind);
  part->length =
      static_cast<int64_t>(reader->VarintUpTo(part->kind == Kind::kChunk ? kChunkMost : INT64_MAX));
  if (part->kind != Kind::kHole) part->id = reader->Id();
  return reader->ok() && part->length > 0;
}

// The parts of all levels, one after the other.
class MapReader {
 public:
  explicit MapReader(const GetMeta& get) : get_(get) {}

  // `level` -1: any.
  Result<void> Read(const Digest& id, int64_t length, int level) {
    OC_TRY(bytes, get_(id));
    OC_TRY(map, DecodeContentMap(bytes));
    if (level >= 0 && map.level != level) return Damaged("a level of it is missing");
    int64_t sum = 0;
    for (const ContentPart& part : map.parts) sum += part.length;  // DecodeContentMap has added them up too
    if (sum != length) return Damaged("its parts do not add up to the file");
    for (const ContentPart& part : map.parts) OC_TRY_VOID(Take(part, map.level));
    return {};
  }

  std::vector<ContentPart> Parts() { return std::move(parts_); }

 private:
  Result<void> Take(const ContentPart& part, int level) {
    if (part.kind == Kind::kMap) return Read(part.id, part.length, level - 1);
    if (part.kind == Kind::kHole && !parts_.empty() && parts_.back().kind == Kind::kHole) {
      return Damaged("a hole follows a hole");
    }
    if (parts_.size() == kContentParts) return Damaged("it has too many parts");
    parts_.push_back(part);
    return {};
  }

  const GetMeta& get_;
  std::vector<ContentPart> parts_;
};

}  // namespace

std::string EncodeContentMap(int level, const std::vector<ContentPart>& parts) {
  std::string bytes;
  bytes.reserve(8 + parts.size() * 40);
  bytes.push_back('M');
  bytes.push_back(static_cast<char>(level));
  AppendVarint(&bytes, parts.size());
  for (const ContentPart& part : parts) {
    bytes.push_back(static_cast<char>(part.kind));
    AppendVarint(&bytes, static_cast<uint64_t>(part.length));
    if (part.kind != Kind::kHole) AppendDigest(&bytes, part.id);
  }
  return bytes;
}

Result<ContentMap> DecodeContentMap(std::string_view bytes) {
  ByteReader reader(bytes);
  const char letter = reader.Byte();
  ContentMap map;
  map.level = static_cast<unsigned char>(reader.Byte());
  const uint64_t count = reader.Varint();
  if (!reader.ok() || letter != 'M' || map.level >= kMapLevels)
    return Damaged("it does not begin like a map");
  if (count == 0 || count > kMapParts || count > reader.left() / kLeastPart) {
    return Damaged("it has not the parts that it counts");
  }
  map.parts.resize(count);
  int64_t sum = 0;
  const ContentPart* before = nullptr;
  for (ContentPart& part : map.parts) {
    if (!ReadPart(&reader, map.level, &part)) return Damaged("a part of it cannot be read");
    if (before != nullptr && before->kind == Kind::kHole && part.kind == Kind::kHole) {
      return Damaged("a hole follows a hole");
    }
    if (__builtin_add_overflow(sum, part.length, &sum)) return Damaged("its parts are longer than any file");
    before = &part;
  }
  if (!reader.AtEnd()) return Damaged("there is something behind it");
  return map;
}

Result<Digest> WriteContentMaps(const std::vector<ContentPart>& parts, const PutMeta& put) {
  if (parts.empty()) return Fail(ErrorCode::kInternal, "a file without parts has no map");
  if (parts.size() > kContentParts) {
    return Fail(ErrorCode::kUsage,
                StrCat("a file of ", parts.size(), " pieces of data and holes has too many"));
  }
  std::vector<ContentPart> below = parts;
  for (int level = 0;; ++level) {
    std::vector<ContentPart> above;
    for (size_t at = 0; at < below.size(); at += kMapParts) {
      const auto begin = below.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<ContentPart> some(
          begin, begin + static_cast<std::ptrdiff_t>(std::min(kMapParts, below.size() - at)));
      ContentPart map{.kind = Kind::kMap, .length = 0, .id = {}};
      for (const ContentPart& part : some) map.length += part.length;
      OC_TRY(id, put(EncodeContentMap(level, some)));
      map.id = id;
      above.push_back(map);
    }
    if (above.size() == 1) return above.front().id;
    below = std::move(above);
  }
}

Result<std::vector<ContentPart>> ReadContentMaps(const Digest& top, int64_t size, const GetMeta& get) {
  MapReader reader(get);
  OC_TRY_VOID(reader.Read(top, size, -1));
  return reader.Parts();
}

}  // namespace overcap
