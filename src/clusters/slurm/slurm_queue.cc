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

SlurmQueue::SlurmQueue(SlurmContext* context) : context_(context) {}

const std::string& SlurmQueue::user() const {
  if (user_.empty()) user_ = UserName();
  return user_;
}

Result<void> SlurmQueue::Refresh(int64_t max_age_us) {
  OC_TRY(text, context_->mirror().Read(MirrorKind::kQueue, max_age_us));
  stale_ = StaleText(text);
  if (known() && text.mark == mark_) return {};
  OC_TRY(rows, ScanSqueue(*text.text, text.mark, user()));
  parsed_.clear(), by_id_.clear(), by_number_.clear();
  indexed_ = false;
  rows_ = std::move(rows);
  text_ = std::move(text.text);
  mark_ = std::move(text.mark);
  taken_us_ = text.taken_us;
  return {};
}

std::vector<SqueueRow> SlurmQueue::RowsOf(const std::string& user) const {
  auto rows = known() ? ScanSqueue(*text_, mark_, user) : Result<std::vector<SqueueRow>>();
  return rows ? *std::move(rows) : std::vector<SqueueRow>();
}

const SqueueJob* SlurmQueue::Parsed(size_t row) {
  const auto [place, is_new] = parsed_.try_emplace(row);
  if (is_new) place->second = rows_[row].Parse();
  return &place->second;
}

void SlurmQueue::Index() {
  if (indexed_) return;
  indexed_ = true;
  by_id_.reserve(rows_.size()), by_number_.reserve(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const SqueueRow& row = rows_[i];
    if (const std::string_view id = IdOfSlurmComment(row.comment()); !id.empty()) by_id_.emplace(id, i);
    by_number_.emplace(row.job_id(), i);
    if (row.array_job_id() > 0 && row.array_job_id() != row.job_id())
      by_number_.emplace(row.array_job_id(), i);
  }
}

SlurmSight SlurmQueue::SightOf(std::string_view id, int64_t slurm_id) {
  SlurmSight sight;
  sight.asked = known();
  sight.taken_us = taken_us_;
  sight.stale = stale_;
  if (slurm_id > 0) {
    sight.rows = RowsOfNumber(slurm_id);
    return sight;
  }
  Index();
  const auto [begin, end] = by_id_.equal_range(id);
  for (auto row = begin; row != end; ++row) sight.rows.push_back(Parsed(row->second));
  return sight;
}

std::vector<const SqueueJob*> SlurmQueue::RowsOfNumber(int64_t slurm_id) {
  Index();
  std::vector<const SqueueJob*> rows;
  const auto [begin, end] = by_number_.equal_range(slurm_id);
  for (auto row = begin; row != end; ++row) rows.push_back(Parsed(row->second));
  return rows;
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
  return Ask("--user=" + user());
}

// A job that the controller has forgotten is no error.
Result<std::vector<SqueueJob>> SlurmQueue::LookAt(int64_t slurm_id) const {
  auto rows = Ask(StrCat("--jobs=", slurm_id));
  if (!rows && rows.error().code == ErrorCode::kNotFound) return std::vector<SqueueJob>();
  return rows;
}

}  // namespace overcap
