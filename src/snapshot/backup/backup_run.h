// SPDX-License-Identifier: Apache-2.0
// One try of a backup, step by step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/backup.h"
#include "snapshot/backup/chunk_sink.h"
#include "snapshot/backup/file_links.h"
#include "snapshot/backup/progress_meter.h"
#include "snapshot/backup/read_files.h"
#include "snapshot/backup/scan.h"
#include "snapshot/backup/seen.h"
#include "snapshot/repository/chunk_writer.h"

namespace overcap {

class BackupRun {
 public:
  // `folder` is its real path.
  BackupRun(const Repository& repository, const BackupRequest& request, std::string folder, int threads);

  Result<BackupReport> Run(bool trust_cache);

 private:
  Result<void> LookAround();
  std::vector<ReadJob> Jobs(EntryFate fate);
  Result<void> Prove();
  void ShareLinks();
  Result<void> Read(std::vector<ReadJob> jobs, bool prove,
                    const std::vector<std::unique_ptr<ChunkSink>>& sinks);
  void Conclude();
  bool NothingToWrite() const;
  Result<bool> HasAllPacks() const;
  void TakeTotals(const SnapshotRecord& record);
  Result<void> FindNewest();
  Result<void> Store(bool trust_cache);
  Result<void> StoreWith(ChunkWriter* writer, bool trusted);
  Result<void> Commit(ChunkWriter* writer);
  SnapshotRecord Record() const;
  void KeepSeen();
  void TakeProblems(std::vector<BackupProblem> problems);
  void ReportProblems();
  bool Stopped() const { return request_.stop != nullptr && *request_.stop; }

  const Repository& repository_;
  const BackupRequest& request_;
  const std::string folder_;
  const int threads_;
  const int64_t began_us_;
  ProgressMeter meter_;
  std::optional<Seen> seen_;
  std::unique_ptr<Scan> scan_;
  std::optional<FileLinks> links_;
  ReadCounters counters_;
  bool changed_ = true;  // the tree is not that of the cache
  BackupReport report_;
};

}  // namespace overcap
