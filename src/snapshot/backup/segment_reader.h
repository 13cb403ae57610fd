// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/chunk_sink.h"
#include "snapshot/backup/file_runs.h"
#include "snapshot/format/chunker.h"

namespace overcap {

// Reads runs of files, cuts them into chunks and hands these on. One per thread; its buffer is used again.
class SegmentReader {
 public:
  SegmentReader(const ChunkSizes& sizes, ChunkSink* sink);

  struct Outcome {
    int error_number = 0;    // of reading
    bool cut_short = false;  // the file ended before the run did
  };
  // The chunks of one run of data of an open file; what could be read is in `parts` in any case. The error of
  // the sink is returned. `on_bytes` is told what was read; when it says false the run ends as if cut short.
  Result<Outcome> Read(int fd, const FileRun& run, std::vector<ContentPart>* parts,
                       const std::function<bool(int64_t bytes)>& on_bytes);

  char* buffer() { return buffer_.get(); }
  int64_t capacity() const { return capacity_; }

 private:
  bool Fill(int fd, int64_t wanted, Outcome* outcome);

  const ChunkSizes sizes_;
  ChunkSink* sink_;
  int64_t capacity_;
  std::unique_ptr<char[]> buffer_;
  int64_t begin_ = 0;  // of what was read and not handed on, in the buffer
  int64_t have_ = 0;   // bytes of it
  int64_t at_ = 0;     // in the file, behind it
  int64_t end_ = 0;    // of the run
};

}  // namespace overcap
