// SPDX-License-Identifier: Apache-2.0
// What all threads of a restore report to: what went wrong, how far it is, whether to go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/restore/restore.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

class RestoreLedger {
 public:
  RestoreLedger(const WantedTree& tree, const RestoreRequest& request) : tree_(tree), request_(request) {}

  // One entry could not be restored; the rest goes on. `also`: so many entries below it neither.
  void Problem(uint32_t entry, const std::string& what, int64_t also = 0);
  void Problem(const std::string& path, const std::string& what, int64_t also = 0);
  // A file or link that is not as the tree has it, because what is there is to stay.
  void Kept(uint32_t entry);
  void Kept(const std::string& path);
  // The same for errno after `act` ("cannot be written"), but a full or read-only disk ends the restore.
  void ErrnoProblem(uint32_t entry, const std::string& act, int error, int64_t also = 0);
  // Ends the restore; the first one is its result.
  void Abort(Error error);
  // Whether it ended because the disk is full.
  bool full() const { return full_; }
  // Whether to stop soon. Cheap.
  bool Over() const {
    return over_.load(std::memory_order_relaxed) ||
           (request_.stop != nullptr && request_.stop->load(std::memory_order_relaxed));
  }
  // The error that ended it, if one did.
  Result<void> Outcome() const;

  void SetTotals(int64_t files, int64_t bytes) { files_total_ = files, bytes_total_ = bytes; }
  void Wrote(int64_t files, int64_t bytes);
  // Tells the caller, whatever the clock says.
  void Report() const;

  int64_t files_done() const { return files_done_; }
  int64_t bytes_done() const { return bytes_done_; }
  int64_t bytes_total() const { return bytes_total_; }
  int64_t failed() const;
  int64_t kept() const;
  std::vector<RestoreProblem> TakeProblems();

 private:
  static constexpr size_t kProblemsKept = 1000;

  const WantedTree& tree_;
  const RestoreRequest& request_;
  std::atomic<bool> over_ = false, full_ = false;
  std::atomic<int64_t> files_done_ = 0, bytes_done_ = 0;
  std::atomic<int64_t> next_report_us_ = 0;
  int64_t files_total_ = 0, bytes_total_ = 0;  // set before the threads start

  mutable std::mutex mutex_;  // guards what follows
  std::vector<RestoreProblem> problems_;
  int64_t failed_ = 0, kept_ = 0;
  std::optional<Error> first_;
};

// "permission denied", for a problem or an error.
std::string ErrnoText(int error);

}  // namespace overcap
