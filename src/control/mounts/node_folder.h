// SPDX-License-Identifier: Apache-2.0
// The node's own folder for mounts (docs/formats/mounts.md).
#pragma once

#include <string>

#include "base/result.h"
#include "control/mounts/mounter_command.h"
#include "sys/fd.h"
#include "sys/variables.h"

namespace overcap {

// MOUNTS_AT/overcap-mounts-UID as a path; `mounts_at` as it is written, "": /tmp.
Result<std::string> NodeFolderPath(const std::string& mounts_at, const Variables& variables);
// Made when it is missing. Its path without links, as the kernel tells of mounts. kDenied when it is not this
// user's alone.
Result<std::string> OpenNodeFolder(const std::string& path);

// What one slot of an attempt has there, and the lock that says that it lives.
class SlotFolder {
 public:
  static Result<SlotFolder> Make(const std::string& node_folder, const std::string& name);
  // One that nobody holds any more; kConflict when somebody does.
  static Result<SlotFolder> Take(const std::string& path);

  // Whether an attempt of that job before this one still holds that slot.
  static bool IsHeldBefore(const std::string& node_folder, const std::string& job, int attempt, int slot);

  const std::string& path() const { return path_; }
  std::string Record() const { return path_ + "/.mounts.json"; }
  MountPlaces PlacesOf(const std::string& mount) const;
  std::string HadFile(const std::string& mount) const { return path_ + "/." + mount + ".had"; }
  // When nothing but lock and record is left in it.
  Result<void> Remove();

 private:
  SlotFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  Fd lock_;
};

}  // namespace overcap
