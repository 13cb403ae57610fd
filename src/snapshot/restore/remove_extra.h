// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/ignore.h"
#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/restore_ledger.h"
#include "snapshot/restore/survey.h"

namespace overcap {

// Removes what a snapshot does not have. Follows no link; what is excluded from backups stays, with the
// folders that it is in. May be used from several threads.
class ExtraRemover {
 public:
  ExtraRemover(const WantedTree& tree, const IgnoreRules& exclude, RestoreLedger* ledger)
      : tree_(tree), exclude_(exclude), ledger_(*ledger) {}

  // True when nothing is left of it. What cannot be removed is a problem.
  bool Remove(int folder_fd, uint32_t folder, const std::string& name);
  int64_t removed() const { return removed_; }

 private:
  static constexpr int kDeepest = 200;  // folders that are open at once

  bool RemoveEntry(int folder_fd, const std::string& name, const std::string& path, int depth);
  bool RemoveFolder(int folder_fd, const std::string& name, const std::string& path, int depth);
  bool Failed(const std::string& path, int error);

  const WantedTree& tree_;
  const IgnoreRules& exclude_;
  RestoreLedger& ledger_;
  std::atomic<int64_t> removed_ = 0;
};

}  // namespace overcap
