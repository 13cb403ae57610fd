// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {

// The owner of the folder at `path`, or of the folder that a link there leads to, if that is another user
// than this process's. nullopt: both belong to this user, or nothing is there.
std::optional<uid_t> StrangerOf(const std::string& path);

// Reads files below a folder that another user may have made. Follows no link below it, reads plain files
// only and only their first kMostBytes, and never waits for data. What cannot be read in this way counts as
// missing. Refuses to write.
class StrangersFiles : public PosixFiles {
 public:
  static constexpr int64_t kMostBytes = 16 << 20;

  explicit StrangersFiles(std::string folder) : folder_(std::move(folder)) {}

  Result<std::string> Read(const std::string& path) const override;
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override;
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override;
  Result<void> MakeFolders(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> RemoveTree(const std::string& path) override;
  bool Exists(const std::string& path) const override;
  Result<std::vector<std::string>> List(const std::string& path) const override;
  int64_t ModifiedUs(const std::string& path) const;  // 0: it is not there

 private:
  Fd Open(const std::string& path, int flags) const;

  std::string folder_;
};

}  // namespace overcap
