// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_cursor.h"

#include <utility>

#include "base/text.h"

namespace overcap {

Result<std::optional<PlacedPart>> ContentCursor::Next() {
  if (!begun_) {
    begun_ = true;
    if (file_.content == FileContent::Kind::kChunk) {
      offset_ = file_.size;
      return PlacedPart{{ContentPart::Kind::kChunk, file_.size, file_.id}, 0};
    }
    if (file_.content == FileContent::Kind::kMap) OC_TRY_VOID(Enter(file_.id, file_.size));
  }
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.next == level.map.parts.size()) {
      if (level.left != 0) return Damaged(file_.id);
      levels_.pop_back();
      continue;
    }
    const ContentPart part = level.map.parts[level.next++];
    if (part.length <= 0 || part.length > level.left || ++parts_ > kContentParts * 2)
      return Damaged(file_.id);
    level.left -= part.length;
    if (part.kind == ContentPart::Kind::kMap) {
      OC_TRY_VOID(Enter(part.id, part.length));
      continue;
    }
    return PlacedPart{part, std::exchange(offset_, offset_ + part.length)};
  }
  if (offset_ != file_.size) return Damaged(file_.id);
  return std::nullopt;
}

Result<void> ContentCursor::Enter(const Digest& id, int64_t length) {
  OC_TRY(bytes, get_(id));
  OC_TRY(map, DecodeContentMap(bytes));
  // Levels only go down, so no map can be inside itself.
  const int above = levels_.empty() ? kMapLevels : levels_.back().map.level;
  if (map.level >= above || map.parts.empty()) return Damaged(id);
  levels_.push_back({std::move(map), 0, length});
  return {};
}

tl::unexpected<Error> ContentCursor::Damaged(const Digest& map) const {
  return Fail(ErrorCode::kCorrupt, StrCat("the map '", map.Hex(), "' is damaged"));
}

}  // namespace overcap
