// SPDX-License-Identifier: Apache-2.0
// How one object travels.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "control/transfer/buffer_pool.h"
#include "control/transfer/copy_proof.h"
#include "stores/store.h"

namespace overcap {

// Larger ones travel in parts.
constexpr int64_t kWholeObject = 8 << 20;

struct CopyTask {
  StoredObjectInfo from;
  std::string to;
};

// The way of all copies of a transfer.
struct CopyWay {
  const Store& from;
  Store& to;
  BufferPool* pool;
};

// At once; what it was verified by. kConflict when the source changed meanwhile, kCorrupt when what came is
// not what the source says.
Result<ProofKind> CopyWhole(const CopyWay& way, const CopyTask& task);

// An object in parts. Parts may be copied by several threads, which have the memory for a part before they
// take one; the one that copies the last one calls Finish.
class PartedCopy {
 public:
  static Result<std::unique_ptr<PartedCopy>> Begin(const CopyWay& way, CopyTask task);

  const CopyTask& task() const { return task_; }
  int64_t bytes_there() const { return bytes_there_; }  // from one that was cut off
  // A part that nobody has taken yet; nullopt: none is left. Not thread safe, as Done is not: the caller's
  // lock.
  std::optional<int64_t> TakePart();
  // After a part that TakePart gave: whether that was the last one in anybody's hands.
  bool Done(const Result<void>& copied);
  bool Idle() const { return in_hands_ == 0; }
  bool Unfinished() const { return next_ < parts_; }
  const std::optional<Error>& error() const { return error_; }

  int64_t PartBytes(int64_t part) const;
  int64_t PartsLeft() const { return parts_ - next_; }  // those that are there from before may be counted
  int64_t MostPartBytes() const { return std::min(upload_->PartSize(), task_.from.size); }
  Result<void> CopyPart(int64_t part, std::string* buffer);
  // What it was verified by, before it appears.
  Result<ProofKind> Finish();

 private:
  PartedCopy(const CopyWay& way, CopyTask task, std::unique_ptr<StoreUpload> upload, StoredChecksum told);
  void SkipWhatIsThere();

  const CopyWay way_;
  const CopyTask task_;
  const std::unique_ptr<StoreUpload> upload_;
  const int64_t parts_;
  CopyProof proof_;
  int64_t bytes_there_ = 0;
  int64_t next_ = 0;
  int64_t in_hands_ = 0;
  std::optional<Error> error_;
  std::mutex cause_mutex_;
  std::optional<Error> cause_;  // of the part that failed first
};

// Whether two objects of the same size have the same content; reads both.
Result<bool> SameContent(const Store& a, const StoredObjectInfo& in_a, const Store& b,
                         const StoredObjectInfo& in_b, BufferPool* pool, const std::atomic<bool>* stop);
// Whether the content in `a` has the checksum that `b` tells; reads `a` only. False where `b` tells none.
Result<bool> SameSum(const Store& a, const StoredObjectInfo& in_a, const Store& b,
                     const StoredObjectInfo& in_b, BufferPool* pool, const std::atomic<bool>* stop);

}  // namespace overcap
