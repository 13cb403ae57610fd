// SPDX-License-Identifier: Apache-2.0
// Looks at every entry of a folder and says which files have to be read: one statx per entry, several
// threads, everything relative to open folders.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/backup.h"
#include "snapshot/backup/byte_arena.h"
#include "snapshot/backup/seen.h"
#include "sys/fd.h"

namespace overcap {

enum class EntryFate : uint8_t {
  kSame,   // as the cache knows it
  kNew,    // a folder or link that the cache does not know so; nothing is left to be done
  kRead,   // a file that has to be read
  kProve,  // the stamp is that of the cache, but it may have changed all the same: read and compare
  kGone,   // vanished, or could not be read: not part of the snapshot
};

struct ScannedFolder;

struct ScannedEntry {
  SeenEntry seen;
  ScannedFolder* below = nullptr;  // folders
  EntryFate fate = EntryFate::kNew;
  bool sparse = false;  // a file that has fewer blocks than bytes
};

// A file that has more than one name.
struct ScannedLink {
  size_t entry = 0;  // of its folder
  uint64_t device = 0;
};

struct ScannedFolder {
  ScannedFolder* parent = nullptr;  // nullptr: the root
  ScannedEntry* self = nullptr;     // in the parent's entries, or Scan::root
  size_t path_length = 0;
  std::vector<ScannedEntry> entries;
  std::vector<ScannedLink> links;

  std::string Path() const;  // relative; "" for the root
  std::string PathOf(const ScannedEntry& entry) const;
};

struct ScanRequest {
  std::string folder;
  const Seen* seen = nullptr;  // nullptr: nothing is known
  std::string keep_name = ".overcap";
  std::vector<std::string> exclude;
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;
  std::atomic<int64_t>* found = nullptr;  // counts entries, for progress
  std::function<void()> on_progress;      // from any thread, often
};

struct Scan {
  Fd root_fd;
  ScannedEntry root;
  std::deque<ScannedFolder> folders;    // the root first; no other order
  std::vector<BackupProblem> problems;  // no order
  bool racy = false;                    // the stamps of the cache were not enough for some entry
  bool removed = false;  // something that the cache knows is not there any more, or cannot be looked at
  std::vector<ByteArena> bytes;  // what the entries point into, beside the cache

  ScannedFolder& top() { return folders.front(); }
};

// kNotFound or kDenied for the folder itself; what is wrong below becomes a problem. kConflict when stopped.
// The entries point into `request.seen`.
Result<std::unique_ptr<Scan>> ScanFolder(const ScanRequest& request);

// "permission denied": what a problem says of an errno.
std::string ProblemText(int error_number);

}  // namespace overcap
