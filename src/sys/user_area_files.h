// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/fd.h"
#include "sys/files.h"

namespace overcap {

// Files for a process of root that serves many users (docs/formats/system-engine.md). Below `users`/<uid>/ it
// acts as that user: no link is followed, no other file system entered, plain files only, and one read
// takes at most kMostBytes. Everywhere else it is `plain`. Of one thread: the ids are the thread's.
class UserAreaFiles : public Files {
 public:
  static constexpr int64_t kMostBytes = 128 << 20;

  UserAreaFiles(Files& plain, std::string users) : plain_(plain), users_(std::move(users)) {}

  // kUnavailable where the kernel cannot do what this needs (openat2, Linux 5.6).
  Result<void> CheckKernel() const;
  // Makes the area of this user, or looks whether it is there and theirs. Only ever in a folder of root's.
  Result<std::string> MakeArea(uid_t uid, gid_t gid);

  Result<std::string> Read(const std::string& path) const override;
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override;
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override;
  Result<void> MakeFolders(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncFolder(const std::string& path) override;
  Result<void> Remove(const std::string& path) override;
  // Of an area: moves it into the area's trash, since a user's tree may be endless; somebody else empties
  // that.
  Result<void> RemoveTree(const std::string& path) override;
  bool Exists(const std::string& path) const override;
  int64_t FolderChangedUs(const std::string& path) const override;
  Result<std::vector<std::string>> List(const std::string& path) const override;

 private:
  struct Area;  // an area's folder, opened
  struct Spot;  // a name in a folder of an area

  // nullopt: the path is in no area.
  std::optional<std::string_view> InArea(const std::string& path) const;
  Result<Area> OpenArea(const std::string& path) const;

  Files& plain_;
  std::string users_;
};

}  // namespace overcap
