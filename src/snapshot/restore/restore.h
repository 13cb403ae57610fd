// SPDX-License-Identifier: Apache-2.0
// Makes a folder what a snapshot says.
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

struct FolderLook;

struct RestoreProgress {
  int64_t files_done = 0, files_total = 0;  // that have to be written
  int64_t bytes_done = 0, bytes_total = 0;
};

struct RestoreRequest {
  Digest tree;
  std::string target;              // absolute; made if missing
  std::vector<std::string> paths;  // only these and what is below; empty: all
  bool remove_extra = false;       // what the snapshot does not have goes (only with all paths)
  // As in BackupRequest: what matches is not removed as extra, and with `looked_ns` nothing replaces it.
  std::vector<std::string> exclude;
  bool owners = false;    // set uid and gid too; needs root
  std::string seen_file;  // local cache: read to know what is there, written at the end; "": none
  std::string keep_name = ".overcap";  // an entry of the target that is never touched or looked at
  // The target as it was looked at a moment ago (folder_look.h), with the same keep_name and exclude: spares
  // a second look, and is used up. May be null.
  FolderLook* look = nullptr;
  // Paths below the target that stay as they are there, whatever the tree has in their place.
  std::vector<std::string> keep;
  // When the caller looked at the target, by the clock of its file system (ns): what changed since, by its
  // ctime, is kept and named. 0: whatever is there may be replaced or removed.
  int64_t looked_ns = 0;
  // Only what a restore of this tree that was cut off has left is replaced; other contents are kept and
  // named.
  bool keep_foreign = false;
  bool proven = false;  // the repository's store compares what it gives with the ids itself
  int threads = 0;
  std::function<void(const RestoreProgress&)> progress;  // from any thread, 10 a second at most
  const std::atomic<bool>* stop =
      nullptr;  // set: ends soon with kConflict; a second restore goes on from there
};

struct RestoreProblem {
  std::string path;
  std::string what;
};

struct RestoreReport {
  int64_t entries = 0, files = 0, bytes = 0;  // of the snapshot, as far as wanted
  int64_t same_files = 0;                     // that were there as they should be
  int64_t written_files = 0, written_bytes = 0, removed = 0;
  std::vector<RestoreProblem> problems;  // damaged or not permitted; all else was restored. At most 1000 kept
  int64_t failed = 0;
  int64_t kept = 0;  // of `failed`: files and links that stay because what is there is in no snapshot
};

// Files that are there already and right are left alone: by the cache, else by size and mtime and a hash of
// the content. Others are replaced by rename, never written into. Nothing outside the target is ever touched,
// whatever the tree says. A restore that was cut off is continued by calling it again. kUnavailable when the
// disk is full (what was written stays for the next time).
Result<RestoreReport> Restore(const Repository& repository, const RestoreRequest& request);

// Compares a folder with a snapshot without changing it.
struct FolderDifference {
  std::string path;
  char what = '~';  // '+' only in the folder, '-' only in the snapshot, '~' differs
};
struct CompareRequest {
  Digest tree;
  std::string folder;
  std::string seen_file;  // "": every file is read
  std::string keep_name = ".overcap";
  std::vector<std::string> exclude;  // as in BackupRequest: what matches and is only in the folder is no
                                     // difference
  bool read_all = false;             // hash every file, whatever stamps say
  int64_t most = 1000;               // differences that are kept
  // LookAtFolder: a tree that will be restored there, with owners or without, read beside the work.
  std::optional<Digest> next;
  bool next_owners = false;
  // The cache alone may tell that nothing has changed; what there is to do for `next` is found on the way.
  bool next_by_cache = false;
};
struct CompareReport {
  std::vector<FolderDifference> differences;
  int64_t added = 0, removed = 0, changed = 0;
  int64_t newest_mtime_ns = 0;  // of what was added or changed
  bool Same() const { return added + removed + changed == 0; }
};
Result<CompareReport> CompareFolder(const Repository& repository, const CompareRequest& request);

}  // namespace overcap
