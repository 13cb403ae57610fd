// SPDX-License-Identifier: Apache-2.0
// What one thread of a scan does with one folder after the other.
#pragma once

#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "snapshot/backup/folder_names.h"
#include "snapshot/backup/scan.h"
#include "snapshot/backup/scan_queue.h"
#include "snapshot/ignore.h"

namespace overcap {

// What all threads of a scan share; not changed while they run.
struct ScanRules {
  const ScanRequest* request = nullptr;
  int root_fd = -1;
  std::optional<IgnoreRules> exclude;

  bool Stopped() const { return request->stop != nullptr && *request->stop; }
};

class ScanWorker {
 public:
  ScanWorker(const ScanRules& rules, ScanQueue* queue) : rules_(rules), queue_(queue) {}

  void Run();
  // After Run:
  std::vector<BackupProblem>& problems() { return problems_; }
  ByteArena& bytes() { return bytes_; }
  bool removed() const { return removed_; }
  bool racy() const { return racy_; }

 private:
  using Name = FolderNames::Name;

  bool Folder(const ScanTask& task);
  void SettleFolder(int fd);
  void CannotOpen(int error_number, SeenCursor known);
  void Entry(const Name& name, const SeenEntry* known);
  void Look(const Name& name, const SeenEntry* known);
  void Add(const Name& name, const struct statx& status, SnapshotEntryType type, const SeenEntry* known);
  void SettleLink(const Name& name, bool is_known, ScannedEntry* entry);
  void Keep(const SeenEntry& known);
  void Missed(const Name& name, int error_number, const SeenEntry* known);
  void Skip(const Name& name, unsigned char type);
  bool Excluded(std::string_view name, bool is_folder);
  const std::string& FolderPath();  // with '/' at its end; "" for the root
  std::string PathOf(std::string_view name);
  int OpenFolder();

  const ScanRules& rules_;
  ScanQueue* queue_;
  FolderNames names_;
  ByteArena bytes_;
  std::vector<BackupProblem> problems_;
  bool removed_ = false;
  bool racy_ = false;

  // Of the folder at hand:
  ScannedFolder* folder_ = nullptr;
  int fd_ = -1;
  std::vector<int64_t> cached_;  // numbers in the cache, one per entry
  std::optional<std::string> folder_path_;
  std::string scratch_;
  // Folders that are open: that at hand and some above it.
  std::vector<std::pair<const ScannedFolder*, Fd>> open_;
};

}  // namespace overcap
