// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/restore_ledger.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "snapshot/restore/change_guard.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr int64_t kReportEveryUs = 100'000;

}  // namespace

std::string ErrnoText(int error) {
  std::string text = strerrordesc_np(error) != nullptr ? strerrordesc_np(error) : StrCat("error ", error);
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1]))) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

void RestoreLedger::Problem(const std::string& path, const std::string& what, int64_t also) {
  const std::lock_guard lock(mutex_);
  failed_ += 1 + also;
  if (problems_.size() < kProblemsKept) problems_.push_back({path.empty() ? "." : path, what});
}

void RestoreLedger::Problem(uint32_t entry, const std::string& what, int64_t also) {
  Problem(tree_.Path(entry), what, also);
}

void RestoreLedger::Kept(const std::string& path) {
  Problem(path, "what is here is in no snapshot and was kept");
  const std::lock_guard lock(mutex_);
  ++kept_;
}

void RestoreLedger::Kept(uint32_t entry) {
  Kept(tree_.Path(entry));
}

void RestoreLedger::ErrnoProblem(uint32_t entry, const std::string& act, int error, int64_t also) {
  if (error == kChangedMeanwhile) {
    if (!tree_[entry].IsFolder()) return Kept(entry);
    return Problem(entry, "something that is in no snapshot is in its place: that is kept", also);
  }
  if (error == ENOSPC || error == EDQUOT) {
    full_ = true;
    return Abort({ErrorCode::kUnavailable,
                  StrCat("no space is left for '", tree_.Path(entry), "': ", ErrnoText(error)), ""});
  }
  if (error == EROFS) {
    return Abort(
        {ErrorCode::kDenied, StrCat("'", request_.target, "' is on a file system that is read-only"), ""});
  }
  Problem(entry, StrCat(act, ": ", ErrnoText(error)), also);
}

void RestoreLedger::Abort(Error error) {
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = std::move(error);
  over_ = true;
}

Result<void> RestoreLedger::Outcome() const {
  const std::lock_guard lock(mutex_);
  if (first_) return Fail(*first_);
  if (request_.stop != nullptr && request_.stop->load()) {
    return Fail(ErrorCode::kConflict, StrCat("the restore into '", request_.target, "' was stopped"),
                "start it again: it goes on from there");
  }
  return {};
}

void RestoreLedger::Wrote(int64_t files, int64_t bytes) {
  files_done_.fetch_add(files, std::memory_order_relaxed);
  bytes_done_.fetch_add(bytes, std::memory_order_relaxed);
  if (!request_.progress) return;
  const int64_t now = PosixClock().MonotonicUs();
  int64_t due = next_report_us_.load(std::memory_order_relaxed);
  if (now >= due && next_report_us_.compare_exchange_strong(due, now + kReportEveryUs)) Report();
}

void RestoreLedger::Report() const {
  if (request_.progress) request_.progress({files_done_, files_total_, bytes_done_, bytes_total_});
}

int64_t RestoreLedger::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

int64_t RestoreLedger::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

std::vector<RestoreProblem> RestoreLedger::TakeProblems() {
  const std::lock_guard lock(mutex_);
  std::sort(problems_.begin(), problems_.end(),
            [](const RestoreProblem& a, const RestoreProblem& b) { return a.path < b.path; });
  return std::move(problems_);
}

}  // namespace overcap
