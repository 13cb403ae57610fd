// SPDX-License-Identifier: Apache-2.0
// The contents of files that come as one stream, cut and stored by several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "snapshot/format/chunker.h"
#include "snapshot/format/content_map.h"
#include "snapshot/repository/chunk_writer.h"

namespace overcap {

// Parts of all files one after the other. The ids of chunks are there after Finish().
class ImportChunks {
 public:
  ImportChunks(ChunkWriter& writer, const ChunkSizes& sizes, int threads);
  ~ImportChunks();

  // A run of data of `length` bytes begins; then exactly that many come.
  void BeginRun(int64_t length);
  Result<void> Data(std::string_view bytes);
  void Hole(int64_t length);

  size_t part_count() const { return parts_.size(); }
  const ContentPart& part(size_t number) const { return parts_[number]; }
  // All is stored and the lanes are flushed.
  Result<void> Finish();

 private:
  struct Task {
    std::string bytes;
    ContentPart* part;
  };
  Result<void> Cut();
  Result<void> Hand(std::string bytes);
  void Work();

  ChunkWriter& writer_;
  const ChunkSizes sizes_;
  std::deque<ContentPart>
      parts_;           // references stay; a worker writes the id of a part that nobody else touches
  std::string buffer_;  // of the segment, not cut yet
  int64_t run_left_ = 0, segment_left_ = 0;

  std::mutex mutex_;  // guards all up to workers_
  std::condition_variable changed_;
  std::deque<Task> queue_;
  size_t queued_bytes_ = 0;
  bool last_ = false;
  std::optional<Error> error_;
  std::vector<std::thread> workers_;
};

}  // namespace overcap
