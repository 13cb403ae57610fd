// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/copy_crew.h"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/text.h"
#include "stores/object_size.h"

namespace overcap {
namespace {

constexpr size_t kMostWaiting = 2048;
// A full disk or a key that expired makes all that follows fail too.
constexpr int kMostFailuresInARow = 10;

}  // namespace

CopyCrew::CopyCrew(const Store& from, Store& to, const TransferOptions& options, TransferReport* report)
    : way_{from, to, &pool_}, options_(options), pool_(options.memory), report_(report) {}

CopyCrew::~CopyCrew() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    jobs_.clear();
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool CopyCrew::Ending() const {
  return report_->gave_up || report_->stopped;
}

bool CopyCrew::Copy(CopyTask task) {
  return Add({Job::Kind::kCopy, std::move(task), {}});
}

bool CopyCrew::Remove(std::string key) {
  CopyTask task;
  task.to = std::move(key);
  return Add({Job::Kind::kRemove, std::move(task), {}});
}

bool CopyCrew::CopyIfOther(CopyTask task, StoredObjectInfo there) {
  return Add({Job::Kind::kCompare, std::move(task), std::move(there)});
}

bool CopyCrew::Foresee(const CopyTask& task) {
  const Result<void> taken = way_.to.Takes(task.to);
  if (taken) return true;
  const std::lock_guard lock(mutex_);
  ++report_->failed;
  if (report_->problems.size() < kMostTransferProblems)
    report_->problems.push_back({task.from.key, taken.error()});
  return false;
}

void CopyCrew::CountSame(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++report_->same;
  report_->same_bytes += bytes;
}

bool CopyCrew::Add(Job job) {
  std::unique_lock lock(mutex_);
  // Woken once for many, not for each.
  if (jobs_.size() >= kMostWaiting)
    less_.wait(lock, [&] { return jobs_.size() <= kMostWaiting / 2 || Ending(); });
  if (options_.stop != nullptr && *options_.stop) report_->stopped = true;
  if (Ending()) return false;
  ++added_;
  added_bytes_ += std::min(job.task.from.size, kMostObjectBytes);  // what a server says may be nonsense
  jobs_.push_back(std::move(job));
  if (static_cast<int64_t>(threads_.size()) < busy_ + static_cast<int64_t>(jobs_.size())) AddThread();
  lock.unlock();
  more_.notify_one();
  return true;
}

void CopyCrew::AddThread() {
  if (quit_ || threads_.size() >= static_cast<size_t>(options_.workers)) return;
  try {
    threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {  // so many processes and threads as one may have
    if (!threads_.empty()) return;            // then with those that there are
    report_->gave_up = true;
    ++report_->failed;
    report_->problems.push_back(
        {jobs_.front().task.to,
         {ErrorCode::kUnavailable, StrCat("no thread can be started: ", strerror(error.code().value())),
          "see how many there may be ('ulimit -u'), and end other programs"}});
    jobs_.clear();
  }
}

void CopyCrew::ListingDone() {
  const std::lock_guard lock(mutex_);
  listed_ = true;
}

void CopyCrew::Drain() {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return busy_ == 0 && (jobs_.empty() || Ending()); });
  jobs_.clear();
}

void CopyCrew::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (options_.stop != nullptr && *options_.stop) report_->stopped = true;
    if (Ending()) jobs_.clear();
    if (TakePart(&lock) || TakeJob(&lock)) continue;
    less_.notify_all();
    if (quit_) return;
    // Signals set the flag without waking anybody.
    more_.wait_for(lock, std::chrono::milliseconds(200));
  }
}

bool CopyCrew::TakePart(std::unique_lock<std::mutex>* lock) {
  if (parted_.empty()) return false;
  const Parted copy = parted_.front();
  // The memory first: who has taken a part must not have to wait for those that come after it.
  lock->unlock();
  BufferPool::Lease lease(&pool_, copy->MostPartBytes());
  lock->lock();
  const std::optional<int64_t> part = Ending() ? std::nullopt : copy->TakePart();
  if (!part) {
    if (std::erase(parted_, copy) == 0 || !copy->Idle()) return true;  // who has the last part ends it
    lock->unlock();
    EndParts(copy);
    lock->lock();
    return true;
  }
  lock->unlock();
  const Result<void> copied = copy->CopyPart(*part, &lease.buffer());
  if (copied) bytes_moved_ += copy->PartBytes(*part);
  lock->lock();
  bool last = copy->Done(copied);
  if (Ending() && copy->Idle()) last = true;
  if (last) {
    std::erase(parted_, copy);
    lock->unlock();
    EndParts(copy);
    lock->lock();
  }
  lock->unlock();
  ShowProgress();
  lock->lock();
  return true;
}

bool CopyCrew::TakeJob(std::unique_lock<std::mutex>* lock) {
  if (jobs_.empty()) return false;
  const Job job = std::move(jobs_.front());
  jobs_.pop_front();
  ++busy_;
  const bool half = jobs_.size() == kMostWaiting / 2;
  lock->unlock();
  if (half) less_.notify_all();
  Do(job);
  ShowProgress();
  lock->lock();
  return true;
}

void CopyCrew::Do(const Job& job) {
  switch (job.kind) {
    case Job::Kind::kRemove:
      return Ended(job.task.to, 0, way_.to.Remove(job.task.to), std::nullopt);
    case Job::Kind::kCopy:
      return DoCopy(job.task);
    case Job::Kind::kCompare: {
      const Result<bool> same = (options_.checksum ? SameContent : SameSum)(way_.from, job.task.from, way_.to,
                                                                            job.there, &pool_, options_.stop);
      if (!same) return Ended(job.task.from.key, 0, Fail(same.error()), ProofKind::kNone);
      if (!*same) {
        if (options_.step)
          options_.step(
              {TransferStep::Kind::kCopy, job.task.from.key, job.task.from.size, CopyVerdict::kContent});
        if (!options_.dry_run) return DoCopy(job.task);
      }
      const std::lock_guard lock(mutex_);
      --busy_;
      ++ended_;
      bytes_moved_ += job.task.from.size;
      if (!*same) return;
      ++report_->same;
      report_->same_bytes += job.task.from.size;
    }
  }
}

void CopyCrew::DoCopy(const CopyTask& task) {
  if (const auto possible = CheckObjectSize(task.from.key, task.from.size); !possible)
    return EndedCopy(task, Fail(possible.error()));
  if (task.from.size > kWholeObject) return BeginParts(task);
  const Result<ProofKind> copied = CopyWhole(way_, task);
  bytes_moved_ += task.from.size;
  EndedCopy(task, copied);
}

void CopyCrew::BeginParts(const CopyTask& task) {
  auto begun = PartedCopy::Begin(way_, task);
  if (!begun) return EndedCopy(task, Fail(begun.error()));
  const Parted copy(std::move(*begun));
  bytes_moved_ += copy->bytes_there();
  if (copy->bytes_there() == task.from.size) return EndParts(copy);
  {
    const std::lock_guard lock(mutex_);
    parted_.push_back(copy);
    // As many as there is memory for parts.
    const int64_t useful = std::min(options_.memory / copy->MostPartBytes(), copy->PartsLeft());
    for (int64_t i = 0; i < useful; ++i) AddThread();
  }
  more_.notify_all();
}

// Called once for each, by whoever did the last part.
void CopyCrew::EndParts(const Parted& copy) {
  if (copy->error()) return EndedCopy(copy->task(), Fail(*copy->error()));
  if (copy->Unfinished()) return EndedCopy(copy->task(), Fail(ErrorCode::kConflict, "stopped"));
  EndedCopy(copy->task(), copy->Finish());
}

void CopyCrew::EndedCopy(const CopyTask& task, const Result<ProofKind>& copied) {
  if (!copied) return Ended(task.from.key, task.from.size, Fail(copied.error()), ProofKind::kNone);
  Ended(task.from.key, task.from.size, {}, *copied);
}

void CopyCrew::Ended(const std::string& key, int64_t bytes, const Result<void>& result,
                     std::optional<ProofKind> copied_by) {
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    --busy_;
    ++ended_;
    if (result) {
      failures_in_a_row_ = 0;
      copied_by ? ++report_->copied : ++report_->removed;
      report_->copied_bytes += bytes;
      if (copied_by) ++report_->proven[static_cast<size_t>(*copied_by)];
      if (copied_by == ProofKind::kNone && way_.from.ChecksPuts()) ++report_->unproven;
    } else if (!report_->stopped) {
      ++report_->failed;
      if (report_->problems.size() < kMostTransferProblems)
        report_->problems.push_back({key, result.error()});
      if (++failures_in_a_row_ >= kMostFailuresInARow) report_->gave_up = true;
    }
    awaited = busy_ == 0 || report_->gave_up;
  }
  if (awaited) less_.notify_all();
}

void CopyCrew::ShowProgress() {
  if (!options_.progress) return;
  TransferProgress progress;
  {
    const std::lock_guard lock(mutex_);
    progress.files_done = ended_;
    progress.files_total = listed_ ? added_ : 0;
    progress.bytes_total = listed_ ? added_bytes_ : 0;
  }
  progress.bytes_done = bytes_moved_;
  options_.progress(progress);
}

}  // namespace overcap
