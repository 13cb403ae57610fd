// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sys/files.h"

namespace overcap {

// The real file system. A new name (OpenAppend, CreateExclusive, Rename, MakeFolders, Remove) survives a
// power cut only after SyncFolder() of its folder; WriteAtomic with `durable` does that itself. Temporary
// files stand in the same folder under names that List() does not show.
class PosixFiles : public Files {
 public:
  Result<std::string> Read(const std::string& path) const override;
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override;
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override;
  Result<void> MakeFolders(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncFolder(const std::string& path) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> RemoveTree(const std::string& path) override;
  bool Exists(const std::string& path) const override;
  int64_t FolderChangedUs(const std::string& path) const override;
  Result<std::vector<std::string>> List(const std::string& path) const override;
};

// write(2) until all is written: 0 or the errno.
int WriteAll(int fd, std::string_view data);

}  // namespace overcap
