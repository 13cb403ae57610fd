// SPDX-License-Identifier: Apache-2.0
// Reads the files of a backup with several threads: small ones in the order of the tree, large ones first
// and in pieces.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/chunk_sink.h"
#include "snapshot/backup/scan.h"
#include "snapshot/format/chunker.h"

namespace overcap {

// A file that has to be read. Its entry gets what was read: stamp, content, attributes, and kGone when that
// was not possible.
struct ReadJob {
  const ScannedFolder* folder = nullptr;
  ScannedEntry* entry = nullptr;
};

struct ReadCounters {
  std::atomic<int64_t> files = 0;
  std::atomic<int64_t> bytes = 0;
};

struct ReadRequest {
  int root_fd = -1;
  ChunkSizes sizes;
  // kProve: entries become kSame when stamp, content and attributes are what they were, else kRead, and are
  // not changed otherwise.
  bool prove = false;
  const std::atomic<bool>* stop = nullptr;
  ReadCounters* counters = nullptr;
  std::function<void()> on_progress;  // from any thread, often
  // For tests: a file was read, and is about to be judged whether it changed meanwhile.
  std::function<void(const std::string& path)> on_read;
};

struct ReadReport {
  std::vector<BackupProblem> problems;
  std::vector<ByteArena> bytes;  // what the entries point into
};

// One thread per sink. The sinks' error, or kConflict when it was stopped; else all jobs are settled.
Result<ReadReport> ReadFiles(const ReadRequest& request, std::vector<ReadJob> jobs,
                             const std::vector<std::unique_ptr<ChunkSink>>& sinks);

}  // namespace overcap
