// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {

// Whose folder that is, where it is not this process' user's: of a link also whose folder it leads to.
// nullopt: this user's, or there is none.
std::optional<uid_t> StrangerOf(const std::string& path);

// The files below a folder that another user may have made, for reading: no link below it is followed, only
// plain files are read, none past kMostBytes, and nothing that is not ready is waited for. What cannot be
// read that way counts as not there. Nothing is written.
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
