// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <optional>

#include "base/text.h"
#include "control/transfer/copy_object.h"
#include "control/transfer/key_stream.h"
#include "control/transfer/transfer.h"
#include "control/transfer/work_queue.h"

namespace overcap {
namespace {

// Gathers from several threads.
class Verdicts {
 public:
  void Same(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++report_.same;
    report_.same_bytes += bytes;
  }
  void Problem(int64_t StoreComparison::*count, const std::string& key, Error error) {
    const std::lock_guard lock(mutex_);
    ++(report_.*count);
    if (report_.problems.size() < kMostTransferProblems) report_.problems.push_back({key, std::move(error)});
  }
  void Moved(int64_t bytes, bool listed, const TransferOptions& options) {
    TransferProgress progress;
    {
      const std::lock_guard lock(mutex_);
      ++progress_.files_done;
      progress_.bytes_done += bytes;
      progress = progress_;
      if (!listed) progress.files_total = progress.bytes_total = 0;
    }
    if (options.progress) options.progress(progress);
  }
  void Expect(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    ++progress_.files_total;
    progress_.bytes_total += bytes;
  }
  StoreComparison Take() { return std::move(report_); }

 private:
  std::mutex mutex_;  // guards all below
  StoreComparison report_;
  TransferProgress progress_;
};

}  // namespace

Result<StoreComparison> CompareAll(const Store& from, const Store& to, const TransferOptions& options) {
  std::optional<Verdicts> verdicts(std::in_place);
  BufferPool pool(options.memory);
  KeyStream left(from), right(to);
  std::atomic<bool> listed{false};
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  const auto compare = [&](const KeyPair& pair) {
    if (stopped()) return;
    const Result<bool> same = SameContent(from, *pair.left, to, *pair.right, &pool, options.stop);
    if (!same && stopped()) return;
    if (!same)
      verdicts->Problem(&StoreComparison::failed, pair.left->key, same.error());
    else if (!*same)
      verdicts->Problem(&StoreComparison::different, pair.left->key,
                        {ErrorCode::kConflict, "the contents differ", ""});
    else
      verdicts->Same(pair.left->size);
    verdicts->Moved(pair.left->size, listed, options);
  };
  std::optional<WorkQueue<KeyPair>> queue(std::in_place, options.workers, compare);
  const auto begin_again = [&] {
    queue.reset();
    verdicts.emplace();
    queue.emplace(options.workers, compare);
  };
  OC_TRY_VOID(VisitPairs(&left, &right, begin_again, [&](KeyPair* pair) {
    if (stopped()) return false;
    const std::string& key = pair->left ? pair->left->key : pair->right->key;
    if (!pair->right) {
      verdicts->Problem(&StoreComparison::missing, key,
                        {ErrorCode::kNotFound, StrCat("is not in ", Quoted(to.Location(), 200)), ""});
    } else if (!pair->left) {
      verdicts->Problem(&StoreComparison::extra, key,
                        {ErrorCode::kNotFound, StrCat("is only in ", Quoted(to.Location(), 200)), ""});
    } else {
      verdicts->Expect(pair->left->size);
      queue->Add(std::move(*pair));
    }
    return true;
  }));
  listed = true;
  queue.reset();  // when all is done
  StoreComparison report = verdicts->Take();
  report.left_out = left.left_out() + right.left_out();
  report.stopped = stopped();
  return report;
}

Result<StoreComparison> CompareOne(const Store& from, const std::string& key, const Store& to,
                                   const std::string& to_key, const TransferOptions& options) {
  OC_TRY(left, from.Stat(key));
  const Result<StoredObjectInfo> right = to.Stat(to_key);
  if (!right && right.error().code != ErrorCode::kNotFound) return Fail(right.error());
  Verdicts verdicts;
  if (!right) {
    verdicts.Problem(&StoreComparison::missing, key,
                     {ErrorCode::kNotFound, StrCat("is not in ", Quoted(to.Location(), 200)), ""});
    return verdicts.Take();
  }
  BufferPool pool(options.memory);
  const Result<bool> same = SameContent(from, left, to, *right, &pool, options.stop);
  const bool stopped = options.stop != nullptr && *options.stop;
  if (!same && !stopped) return Fail(same.error());
  if (same && *same) verdicts.Same(left.size);
  if (same && !*same)
    verdicts.Problem(&StoreComparison::different, key, {ErrorCode::kConflict, "the contents differ", ""});
  StoreComparison report = verdicts.Take();
  report.stopped = stopped;
  return report;
}

}  // namespace overcap
