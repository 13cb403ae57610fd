// SPDX-License-Identifier: Apache-2.0
// The file seam: what the daemon and the agents keep goes through here, so that tests can crash it anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// An append-only file. Bytes are durable only after Sync() returned without error.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // All of `data` or an error; after an error the tail may hold a part of it: TruncateTo() the last good
  // size.
  virtual Result<void> Append(std::string_view data) = 0;
  virtual Result<void> Sync() = 0;  // fdatasync
  virtual Result<void> TruncateTo(int64_t size) = 0;
  virtual int64_t Size() const = 0;
  // Reserves disk space for the next `bytes` bytes to be appended, so that they fit even if others fill the
  // disk. kUnavailable: there is no room now. False: this file system cannot reserve space.
  virtual Result<bool> Reserve(int64_t bytes) {
    (void)bytes;
    return false;
  }
};

// All paths are absolute. Folders are made 0700 and files 0600. Nothing here retries or waits.
class Files {
 public:
  virtual ~Files() = default;

  virtual Result<std::string> Read(const std::string& path) const = 0;
  // Bytes [offset, offset+limit) of the file; fewer at its end.
  virtual Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const = 0;
  // Opens for appending, made if missing.
  virtual Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) = 0;
  // Readers see the old or the new content, also after a crash of a process. `durable`: also after a power
  // cut.
  virtual Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) = 0;
  // Makes the file with this content; kConflict when it exists already: exactly one caller wins.
  virtual Result<void> CreateExclusive(const std::string& path, std::string_view data) = 0;
  virtual Result<void> MakeFolders(const std::string& path) = 0;  // fine when it exists
  virtual Result<void> Rename(const std::string& from, const std::string& to) = 0;
  virtual Result<void> SyncFolder(const std::string& path) = 0;
  virtual Result<void> Remove(const std::string& path) = 0;      // a file; fine when it is gone
  virtual Result<void> RemoveTree(const std::string& path) = 0;  // fine when it is gone
  virtual bool Exists(const std::string& path) const = 0;
  virtual Result<std::vector<std::string>> List(const std::string& path) const = 0;  // names, sorted
  static constexpr int kMostEntriesLookedAt = 256;
  // When something in this folder was last written, made or removed, as far as its first few entries tell;
  // microseconds since 1970. 0: nobody knows.
  virtual int64_t FolderChangedUs(const std::string& path) const {
    (void)path;
    return 0;
  }
};

}  // namespace overcap
