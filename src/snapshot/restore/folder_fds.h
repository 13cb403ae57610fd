// SPDX-License-Identifier: Apache-2.0
// The way into a folder and what is below it: from the top down, never through a symbolic link.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "snapshot/restore/wanted_tree.h"
#include "sys/fd.h"

namespace overcap {

// The folder that is restored into or compared.
struct TargetFolder {
  Fd fd;             // O_PATH
  std::string path;  // its real one
  bool made = false;

  // kNotFound when it is not there and is not to be made; kConflict when something else is.
  static Result<TargetFolder> Open(const std::string& path, bool make);
};

// Descriptors (O_PATH) of the folders of a tree below the target; a few are kept open. One per thread.
class FolderFds {
 public:
  FolderFds(const WantedTree& tree, int root_fd) : tree_(tree), root_fd_(root_fd) {}
  FolderFds(const FolderFds&) = delete;
  FolderFds& operator=(const FolderFds&) = delete;

  // -1 and errno when it cannot be opened; ENOTDIR for a link. Good until kKept / 2 - 1 others were asked
  // for.
  int Get(uint32_t folder) {
    if (folder == last_folder_) return last_fd_;
    return Find(folder);
  }

 private:
  static constexpr size_t kKept = 96;

  struct Slot {
    Fd fd;
    uint64_t used = 0;
  };

  int Find(uint32_t folder);
  int OpenAtOnce(int fd, const std::vector<uint32_t>& chain);
  int Keep(uint32_t folder, int fd);
  void DropOld();

  const WantedTree& tree_;
  const int root_fd_;
  std::unordered_map<uint32_t, Slot> open_;
  std::string path_;
  uint64_t ticks_ = 0;
  uint32_t last_folder_ = kNoEntry;
  int last_fd_ = -1;
};

// A folder for reading its names; gives itself the right to when its owner has none and `may_chmod` is set.
Fd OpenFolderToRead(int parent_fd, const char* name, bool may_chmod);

// chmod of what an O_PATH descriptor stands for; 0 or -1 and errno.
int ChmodPathFd(int fd, unsigned mode);

}  // namespace overcap
