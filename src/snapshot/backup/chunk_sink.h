// SPDX-License-Identifier: Apache-2.0
// Where the chunks of a file go.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/format/entry.h"
#include "snapshot/repository/chunk_writer.h"

namespace overcap {

// One per thread.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  virtual Result<Digest> Add(ChunkKind kind, std::string_view bytes) = 0;
};

// Into the repository.
class LaneSink : public ChunkSink {
 public:
  explicit LaneSink(ChunkWriter::Lane* lane) : lane_(lane) {}
  Result<Digest> Add(ChunkKind kind, std::string_view bytes) override {
    OC_TRY(added, lane_->Add(kind, bytes));
    return added.id;
  }

 private:
  ChunkWriter::Lane* lane_;
};

// Nowhere: only the ids are wanted.
class HashSink : public ChunkSink {
 public:
  Result<Digest> Add(ChunkKind, std::string_view bytes) override { return Sha256Of(bytes); }
};

// What a tree says of a file that consists of these chunks and holes.
Result<FileContent> ContentOf(const std::vector<ContentPart>& parts, ChunkSink* sink);

}  // namespace overcap
