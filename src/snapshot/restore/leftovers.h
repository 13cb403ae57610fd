// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/restore.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// Tells what a restore of a tree that was cut off has left from what a user has written: each byte of such a
// file is the tree's, or zero because it was not written yet; a folder or link is the tree's but for its
// attributes. One per thread.
class Leftovers {
 public:
  // All outlive it.
  Leftovers(const WantedTree& tree, const TargetFolder& target, const GetMeta& get)
      : tree_(tree), get_(get), fds_(tree, target.fd.Get()) {}

  // False also when that cannot be told.
  bool Has(uint32_t entry);

 private:
  bool HasFile(int fd, uint32_t file);
  bool HasPart(int fd, int64_t size, int64_t offset, int64_t length, const std::string& bytes);

  const WantedTree& tree_;
  const GetMeta& get_;
  FolderFds fds_;
  std::string buffer_;
};

// Takes those differences away that a restore of `tree` into `folder` has left when it was cut off.
Result<void> EraseLeftovers(const Repository& repository, const Digest& tree, const std::string& folder,
                            std::vector<FolderDifference>* differences);

}  // namespace overcap
