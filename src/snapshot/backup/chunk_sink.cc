// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/chunk_sink.h"

namespace overcap {

Result<FileContent> ContentOf(const std::vector<ContentPart>& parts, ChunkSink* sink) {
  if (parts.empty()) return FileContent();
  if (parts.size() == 1 && parts[0].kind == ContentPart::Kind::kChunk) {
    return FileContent{FileContent::Kind::kChunk, parts[0].id};
  }
  const PutMeta put = [sink](std::string_view bytes) { return sink->Add(ChunkKind::kMeta, bytes); };
  OC_TRY(map, WriteContentMaps(parts, put));
  return FileContent{FileContent::Kind::kMap, map};
}

}  // namespace overcap
