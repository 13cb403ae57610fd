// SPDX-License-Identifier: Apache-2.0
// What one thread does that reads files for a backup.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "snapshot/backup/read_files.h"
#include "snapshot/backup/read_queue.h"
#include "snapshot/backup/segment_reader.h"

namespace overcap {

class ReadWorker {
 public:
  ReadWorker(const ReadRequest& request, ReadQueue* queue, std::atomic<bool>* given_up, ChunkSink* sink)
      : request_(request), queue_(queue), given_up_(given_up), sink_(sink), reader_(request.sizes, sink) {}

  // Until there is nothing to do, or somebody gave up.
  Result<void> Run();
  std::vector<BackupProblem>& problems() { return problems_; }
  ByteArena& bytes() { return bytes_; }

 private:
  // What is known of a file that was read to its end.
  struct Reading {
    SeenStamp stamp;
    std::vector<ContentPart> parts;
    bool unsteady = false;
  };

  bool Stopped() const;
  Result<void> Step(const ReadStep& step);
  Result<void> ShareOrEnd(std::shared_ptr<SharedFile> file);
  Result<void> Small(const ReadJob& job);
  Result<void> Whole(const ReadJob& job);
  std::shared_ptr<SharedFile> Begin(const ReadJob& job, int attempt);
  Result<void> Piece(SharedFile* file, size_t number);
  Result<bool> End(SharedFile* file);
  Result<void> Settle(const ReadJob& job, int fd, Reading reading);
  void Failed(const ReadJob& job, int error_number);
  Fd Open(const ReadJob& job);
  void Read(const ReadJob& job);
  void Count(int64_t bytes);

  const ReadRequest& request_;
  ReadQueue* queue_;
  std::atomic<bool>* given_up_;
  ChunkSink* sink_;
  SegmentReader reader_;
  ByteArena bytes_;
  std::vector<BackupProblem> problems_;
  // The folder of the last file, kept open for the next.
  const ScannedFolder* folder_ = nullptr;
  Fd folder_fd_;
  std::string scratch_;
};

}  // namespace overcap
