// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "snapshot/restore/file_maker.h"

namespace overcap {

// While many files are made: the folders below the target's own go to parts of an ext4 disk of their own, so
// that threads do not wait for each other and removed files of before are not in the way
// (sys/spread_folders.h; 61,000 files beside others that were just removed: 3.3 s instead of 13 s of system
// time). Other file systems refuse it.
class SpreadInodes {
 public:
  explicit SpreadInodes(RestoreScene* scene);
  // Of a folder that was just made. Only those directly in the target are marked.
  void Made(uint32_t folder, int fd);
  // Takes all marks away again.
  void End();

 private:
  void Mark(uint32_t folder, int fd);

  RestoreScene& scene_;
  bool active_ = false;
  std::vector<uint32_t> marked_;
};

}  // namespace overcap
