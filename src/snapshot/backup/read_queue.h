// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "snapshot/backup/file_runs.h"
#include "snapshot/backup/read_files.h"
#include "sys/fd.h"

namespace overcap {

// A file that several threads read, each a piece. What is not atomic is written by the one thread that opens
// it, by the one that reads the piece, and, when `left` is 0, by the one that found it so.
struct SharedFile {
  struct Piece {
    FileRun run;
    std::vector<ContentPart> parts;
  };

  ReadJob job;
  int attempt = 1;
  Fd fd;
  SeenStamp before;
  std::vector<Piece> pieces;
  std::atomic<size_t> left = 0;
  std::atomic<int> error_number = 0;
  std::atomic<bool> cut_short = false;
};

// What a thread is to do next: one of the three.
struct ReadStep {
  std::span<const ReadJob> small;
  const ReadJob* large = nullptr;    // open it and Share() its pieces
  std::shared_ptr<SharedFile> file;  // read one piece of it
  size_t piece = 0;
};

class ReadQueue {
 public:
  // In the order of the tree.
  explicit ReadQueue(std::vector<ReadJob> jobs);

  std::optional<ReadStep> Next();
  void Share(std::shared_ptr<SharedFile> file);

 private:
  struct Shared {
    std::shared_ptr<SharedFile> file;
    size_t next = 0;
  };

  std::vector<ReadJob> large_;  // largest first
  std::vector<ReadJob> small_;
  std::mutex mutex_;  // guards all below
  std::deque<Shared> shared_;
  size_t next_large_ = 0;
  size_t next_small_ = 0;
};

}  // namespace overcap
