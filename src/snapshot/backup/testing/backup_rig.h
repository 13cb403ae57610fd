// SPDX-License-Identifier: Apache-2.0
// A folder, a repository in memory, and backups of the one in the other.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "snapshot/backup/backup.h"
#include "snapshot/format/entry.h"
#include "snapshot/repository/repository.h"
#include "snapshot/testing/sample_folder.h"
#include "stores/store.h"
#include "sys/testing/temp_folder.h"

namespace overcap {

// Small chunks, so that small files are large.
constexpr ChunkSizes kSmallChunks{.min = 1024, .average = 4096, .max = 16'384, .segment = 65'536};

class BackupRig {
 public:
  explicit BackupRig(std::shared_ptr<Store> store = nullptr);

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Put(const std::string& name, std::string_view content) const { PutFile(Path(name), content); }
  BackupRequest Request() const;
  // A failure is the test's.
  BackupReport Backup(BackupRequest request) const;
  BackupReport Backup() const { return Backup(Request()); }

  // Path -> entry of a tree.
  std::map<std::string, SnapshotEntry> Tree(const Digest& tree) const;
  std::string Content(const SnapshotEntry& entry) const;
  // Path -> content, "dir", "link TARGET": of a tree. What cannot be read is "lost".
  std::map<std::string, std::string> Contents(const Digest& tree) const;
  // The same of the folder on the disk, without .overcap.
  std::map<std::string, std::string> OnDisk() const;
  std::string SeenFile() const { return Path(".overcap/seen"); }

  TempFolder temp;
  OffsetClock clock;  // an hour ahead: no file is racily clean
  std::shared_ptr<Store> store;
  Repository repository;

 private:
  std::string folder_;
};

}  // namespace overcap
