// SPDX-License-Identifier: Apache-2.0
// The threads of a transfer: one puts in what is to be done, the others do it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "control/transfer/copy_object.h"
#include "control/transfer/transfer.h"

namespace overcap {

class CopyCrew {
 public:
  CopyCrew(const Store& from, Store& to, const TransferOptions& options, TransferReport* report);
  ~CopyCrew();  // ends without doing what nobody has begun

  // Wait while much is waiting already. False: the transfer ends early, more is of no use.
  bool Copy(CopyTask task);
  bool Remove(std::string key);
  // Of a dry run: false, and a problem of the report, when the destination cannot have an object of this
  // name.
  bool Foresee(const CopyTask& task);
  // Copied only when the contents differ: by reading both with TransferOptions::checksum, else by the
  // checksum that the destination tells.
  bool CopyIfOther(CopyTask task, StoredObjectInfo there);
  void CountSame(int64_t bytes);
  // All is listed: totals are known from now on.
  void ListingDone();
  // Waits until all is done. The report is complete then, and the crew may be given more.
  void Drain();

 private:
  struct Job {
    enum class Kind { kCopy, kRemove, kCompare } kind = Kind::kCopy;
    CopyTask task;
    StoredObjectInfo there;  // of kCompare
  };
  using Parted = std::shared_ptr<PartedCopy>;

  bool Add(Job job);
  void AddThread();  // with the lock held; none when there are enough
  void Work();
  bool Ending() const;
  // One of these, with the lock held.
  bool TakePart(std::unique_lock<std::mutex>* lock);
  bool TakeJob(std::unique_lock<std::mutex>* lock);
  void Do(const Job& job);
  void DoCopy(const CopyTask& task);
  void BeginParts(const CopyTask& task);
  void EndParts(const Parted& copy);
  void Ended(const std::string& key, int64_t bytes, const Result<void>& result,
             std::optional<ProofKind> copied_by);
  void EndedCopy(const CopyTask& task, const Result<ProofKind>& copied);
  void ShowProgress();

  const CopyWay way_;
  const TransferOptions& options_;
  BufferPool pool_;
  TransferReport* const report_;
  std::atomic<int64_t> bytes_moved_{0};  // of parts too, before their object is whole

  mutable std::mutex mutex_;  // guards all below, and the report
  std::condition_variable more_, less_;
  std::deque<Job> jobs_;
  std::list<Parted> parted_;  // those that have parts to take
  int64_t busy_ = 0;          // jobs and parted copies that somebody is at
  int64_t added_ = 0, added_bytes_ = 0;
  int64_t ended_ = 0;
  int failures_in_a_row_ = 0;
  bool listed_ = false;
  bool quit_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace overcap
