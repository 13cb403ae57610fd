// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/ignore.h"
#include "snapshot/restore/change_guard.h"
#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/restore_ledger.h"
#include "snapshot/restore/survey.h"

namespace overcap {

// Removes what a snapshot does not have. Follows no link; what is excluded from backups stays, with the
// folders that it is in. May be used from several threads.
class ExtraRemover {
 public:
  ExtraRemover(const WantedTree& tree, const IgnoreRules& exclude, ChangeGuard* guard, RestoreLedger* ledger)
      : tree_(tree), exclude_(exclude), guard_(*guard), ledger_(*ledger) {}

  // Before the first call of Remove: what is taken away goes through it.
  void Use(StagingFolder* staging) { staging_ = staging; }

  // True when nothing is left of it. What cannot be removed is a problem.
  bool Remove(int folder_fd, uint32_t folder, const std::string& name);
  int64_t removed() const { return removed_; }

 private:
  static constexpr int kDeepest = 200;  // folders that are open at once

  bool RemoveEntry(int folder_fd, const std::string& name, const std::string& path, int depth);
  bool RemoveLooked(int folder_fd, const std::string& name, const std::string& path, int depth);
  bool RemoveFolder(int folder_fd, const std::string& name, const std::string& path, int depth);
  bool Failed(const std::string& path, int error);

  const WantedTree& tree_;
  const IgnoreRules& exclude_;
  ChangeGuard& guard_;
  RestoreLedger& ledger_;
  StagingFolder* staging_ = nullptr;
  std::atomic<int64_t> removed_ = 0;
};

}  // namespace overcap
