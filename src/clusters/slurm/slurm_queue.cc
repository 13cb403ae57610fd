// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_queue.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/units.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kLookTime{20};

std::string StaleText(const MirrorText& text) {
  if (!text.error) return {};
  const std::string age =
      text.age_us ? FormatDuration(*text.age_us / 1'000'000) + " ago" : "an unknown time ago";
  return StrCat("as of ", age, ": ", text.error->message);
}

}  // namespace

SlurmQueue::SlurmQueue(SlurmContext* context) : context_(context), user_(UserName()) {}

Result<void> SlurmQueue::Refresh(int64_t max_age_us) {
  OC_TRY(text, context_->mirror().Read(MirrorKind::kQueue, max_age_us));
  stale_ = StaleText(text);
  if (known_ && text.mark == mark_) return {};
  OC_TRY(rows, ParseSqueue(*text.text, text.mark));
  rows_ = std::move(rows);
  mark_ = text.mark;
  taken_us_ = text.taken_us;
  known_ = true;
  Index();
  return {};
}

void SlurmQueue::Index() {
  by_id_.clear(), by_number_.clear();
  for (const SqueueJob& row : rows_) {
    if (!IsMine(row)) continue;
    const std::string_view id = IdOfSlurmComment(row.comment);
    if (!id.empty()) by_id_[id].push_back(&row);
    by_number_[row.job_id].push_back(&row);
    if (row.array_job_id > 0 && row.array_job_id != row.job_id) by_number_[row.array_job_id].push_back(&row);
  }
}

SlurmSight SlurmQueue::SightOf(std::string_view id, int64_t slurm_id) const {
  SlurmSight sight;
  sight.asked = known_;
  sight.taken_us = taken_us_;
  sight.stale = stale_;
  const auto by_number = by_number_.find(slurm_id);
  if (slurm_id > 0 && by_number != by_number_.end()) {
    sight.rows = by_number->second;
  } else if (const auto by_id = by_id_.find(id); slurm_id == 0 && by_id != by_id_.end()) {
    sight.rows = by_id->second;
  }
  return sight;
}

std::vector<const SqueueJob*> SlurmQueue::RowsOfNumber(int64_t slurm_id) const {
  const auto found = by_number_.find(slurm_id);
  return found == by_number_.end() ? std::vector<const SqueueJob*>() : found->second;
}

Result<std::vector<SqueueJob>> SlurmQueue::Ask(const std::string& option) const {
  char mark[24];
  std::snprintf(mark, sizeof mark, "m%016llx", static_cast<unsigned long long>(context_->random().Next()));
  std::vector<std::string> argv = SqueueCommand(mark);
  argv.push_back(option);
  OC_TRY(text, context_->Ask(argv, kLookTime));
  return ParseSqueue(text, mark);
}

Result<std::vector<SqueueJob>> SlurmQueue::Look() const {
  return Ask("--user=" + user_);
}

// A job that the controller has forgotten is no error.
Result<std::vector<SqueueJob>> SlurmQueue::LookAt(int64_t slurm_id) const {
  auto rows = Ask(StrCat("--jobs=", slurm_id));
  if (!rows && rows.error().code == ErrorCode::kNotFound) return std::vector<SqueueJob>();
  return rows;
}

}  // namespace overcap
