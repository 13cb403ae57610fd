// SPDX-License-Identifier: Apache-2.0
// Which folders of this machine would do for work on a local disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct UsableFolder {
  std::string path;
  int64_t free_bytes = 0;
  uint64_t device = 0;
  bool operator==(const UsableFolder&) const = default;
};

// Where local disks are mounted that can be written, by the text of /proc/self/mounts. Pure.
std::vector<std::string> LocalMounts(std::string_view mounts);
// The one with the shortest path of each disk, most free space first, `most` at most. Pure.
std::vector<UsableFolder> BestFolders(std::vector<UsableFolder> candidates, size_t most);

// What this user can write on this machine, most free space first.
std::vector<UsableFolder> FindUsableFolders(const std::string& user, const std::string& temp_folder);

// The folder with all above it. kNotFound when the first of its parts ("/scratch") is not there, kDenied when
// it may not be made: both hints name folders that would do. Says with `made` which of them were missing, the
// topmost; "": none.
Result<void> MakeWorkFolder(const std::string& folder, const std::string& user,
                            const std::string& temp_folder, std::string* made);

}  // namespace overcap
