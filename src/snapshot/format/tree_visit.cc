// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/format/tree_walk.h"

namespace overcap {
namespace {

// All maps of a file and what they name. `level` -1: any.
Result<void> VisitMap(const Digest& id, int level, const GetMeta& get, const TreeVisitor& visitor) {
  if (!visitor.enter_meta(id)) return {};
  OC_TRY(bytes, get(id));
  OC_TRY(map, DecodeContentMap(bytes));
  if (level >= 0 && map.level != level) {
    return Fail(ErrorCode::kCorrupt, StrCat("map '", id.Hex(), "' of a file is damaged: a level is missing"));
  }
  for (const ContentPart& part : map.parts) {
    if (part.kind == ContentPart::Kind::kChunk) visitor.on_data(part.id);
    if (part.kind == ContentPart::Kind::kMap) OC_TRY_VOID(VisitMap(part.id, map.level - 1, get, visitor));
  }
  return {};
}

Result<void> VisitPage(const TreePage& page, const GetMeta& get, const TreeVisitor& visitor) {
  for (const SnapshotEntry& entry : page) {
    if (entry.content.kind == FileContent::Kind::kChunk) visitor.on_data(entry.content.id);
    if (entry.content.kind == FileContent::Kind::kMap) {
      OC_TRY_VOID(VisitMap(entry.content.id, -1, get, visitor));
    }
  }
  return {};
}

}  // namespace

Result<void> VisitTree(const Digest& tree, const GetMeta& get, const TreeVisitor& visitor) {
  TreeWalk walk(tree, &get);
  while (walk.place() != TreeWalk::Place::kEnd) {
    if (!visitor.enter_meta(walk.id())) {
      walk.Skip();
      continue;
    }
    OC_TRY_VOID(walk.Open());
    if (walk.place() != TreeWalk::Place::kEntry) continue;
    OC_TRY_VOID(VisitPage(walk.page(), get, visitor));
    walk.SkipPage();
  }
  return {};
}

}  // namespace overcap
