// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "snapshot/backup/read_files.h"
#include "snapshot/backup/scan.h"
#include "snapshot/backup/tree_order.h"

namespace overcap {

// Which files of a scan are one and the same under several names. The first of them in the order of the tree
// stands for all: it alone is read.
class FileLinks {
 public:
  // To be called for all items in order. Whether this one stands for itself.
  bool Note(const TreeOrder::Item& item);
  // Gives the others what was read for the first.
  void Share(std::vector<BackupProblem>* problems);
  // The first, for one that is not; else nullptr.
  const ReadJob* FirstOf(const ScannedEntry* entry) const;

 private:
  struct Key {
    uint64_t device, inode;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.inode * 0x9E3779B97F4A7C15U ^ key.device; }
  };

  std::unordered_map<Key, ReadJob, KeyHash> firsts_;
  std::vector<std::pair<ReadJob, const ReadJob*>> others_;
  std::unordered_map<const ScannedEntry*, const ReadJob*> first_of_;
};

}  // namespace overcap
