// SPDX-License-Identifier: Apache-2.0
// Puts captured code into a repository.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/segment_reader.h"
#include "snapshot/code_entry.h"
#include "snapshot/repository/chunk_writer.h"

namespace overcap {

struct CodeContent {
  int64_t size = 0;
  FileContent content;
};

// What the first `size` bytes of an open file are to a tree, as they are read: fewer when it is shorter.
// `on_bytes` is told of each piece. errno as an error that begins with `what`.
Result<CodeContent> ReadCode(int fd, int64_t size, const ChunkSizes& sizes, SegmentReader* reader,
                             ChunkSink* sink, std::string_view what,
                             const std::function<void(int64_t)>& on_bytes);

// One capture on its way into the repository.
class CodeWriter {
 public:
  static Result<std::unique_ptr<CodeWriter>> Start(const Repository& repository);

  // From several threads.
  Result<CodeContent> AddFile(int fd, int64_t size, std::string_view what,
                              const std::function<void(int64_t)>& on_bytes);
  // All files were added. The tree is durable and pinned when it returns. kConflict when a content that was
  // not added is not there, or about to go: try again, and add all.
  Result<Digest> Finish(const std::vector<CodeEntry>& entries);

  int64_t new_files() const { return new_files_; }  // of which something was new
  int64_t new_bytes() const { return new_bytes_; }

 private:
  // Keeps what one thread needs.
  class Worker : public ChunkSink {
   public:
    Worker(std::unique_ptr<ChunkWriter::Lane> lane, const ChunkSizes& sizes)
        : lane_(std::move(lane)), reader_(sizes, this) {}

    Result<Digest> Add(ChunkKind kind, std::string_view bytes) override;
    Result<void> Flush() { return lane_->Flush(); }
    SegmentReader& reader() { return reader_; }
    int64_t TakeNewBytes() { return std::exchange(new_bytes_, 0); }

   private:
    std::unique_ptr<ChunkWriter::Lane> lane_;
    SegmentReader reader_;
    int64_t new_bytes_ = 0;
  };

  CodeWriter(const Repository& repository, std::unique_ptr<ChunkWriter> writer)
      : sizes_(repository.config().chunks), writer_(std::move(writer)) {}

  std::unique_ptr<Worker> TakeWorker();
  void GiveBack(std::unique_ptr<Worker> worker);

  const ChunkSizes sizes_;
  std::unique_ptr<ChunkWriter> writer_;
  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<Worker>> idle_;
  std::atomic<int64_t> new_files_ = 0, new_bytes_ = 0;
};

}  // namespace overcap
