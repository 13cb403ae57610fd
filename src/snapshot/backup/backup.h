// SPDX-License-Identifier: Apache-2.0
// Takes a snapshot of a folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct BackupProgress {
  bool scanning = true;                     // how much there is is not known yet
  int64_t entries = 0;                      // found
  int64_t files_done = 0, files_total = 0;  // that have to be read
  int64_t bytes_done = 0, bytes_total = 0;
  int64_t stored_bytes = 0;
};

struct BackupRequest {
  std::string folder;  // absolute
  std::string workspace;
  std::string host, user, message;
  std::string seen_file;  // the local cache (docs/formats/snapshot.md, "Local knowledge"); "": none
  std::vector<std::string> exclude;  // patterns as in .gitignore files, relative to the folder
  bool write_unchanged = false;      // a snapshot also when the tree is that of the newest
  int threads = 0;                   // 0: as many as there are processors, 8 at most
  std::function<void(const BackupProgress&)> progress;  // from any thread, not too often (10 a second)
  const std::atomic<bool>* stop =
      nullptr;  // set: ends soon with kConflict; what was stored serves the next backup
};

struct BackupProblem {
  std::string path;
  std::string what;      // "permission denied"
  bool skipped = false;  // a socket or device: told, but the snapshot is complete without it
};

struct BackupReport {
  std::optional<NamedSnapshot> snapshot;  // the new one; nullopt: nothing changed since `parent`
  std::optional<NamedSnapshot> parent;    // the newest before
  Digest tree;
  int64_t entries = 0, files = 0, bytes = 0;
  int64_t read_files = 0, read_bytes = 0;
  int64_t new_bytes = 0, stored_bytes = 0;
  std::vector<BackupProblem> problems;  // in the order of the tree, at most 1000 kept
  int64_t unread = 0, skipped = 0, unsteady = 0;
  // Files that were read and stored again because the repository had lost something of them, and then the
  // packs that its indexes name and that are not there.
  int64_t read_again = 0;
  std::vector<std::string> lost_packs;
};

// kNotFound for a folder that is none. Files that cannot be read are left out and named; the snapshot is made
// all the same. One backup of a folder at a time is the caller's business; a second one would only do the
// work twice.
Result<BackupReport> Backup(const Repository& repository, const BackupRequest& request);

}  // namespace overcap
