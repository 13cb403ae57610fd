// SPDX-License-Identifier: Apache-2.0
// What the engine needs of an agent's report: how the slot ended and what became of each task. Its user can
// forge the report, so the array bounds the memory and model/request_limits.h the time, not the file's size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/job_spec.h"
#include "model/job_state.h"

namespace overcap {

enum class ReportDetail {
  kCounts,  // one byte for each task
  kTasks,   // also how each ended
};

// How much of a report is read.
struct ReportBounds {
  int64_t whole_bytes = INT64_MAX;  // all lines; behind these only the one that ends the slot
  int64_t slow_bytes = INT64_MAX;   // in lines that need the slow parser: agents write none
  size_t line_bytes = SIZE_MAX;     // longer lines are skipped
};
// The bounds for a job of another user than the engine's own; an engine of one user has none.
ReportBounds BoundsOfReport(const JobSpec& spec);

class ReportTally {
 public:
  struct Task {
    JobState state = JobState::kUnknown;
    int exit_status = -1;
    int attempt = 1;
    int64_t last_us = 0;  // time of its latest line
  };

  // Ignores lines about tasks that `array`, which must outlive this, does not have.
  ReportTally(const ArraySpec& array, ReportDetail detail, const ReportBounds& bounds = {});

  // As AgentReportReader::Feed().
  size_t Feed(std::string_view bytes);

  int running() const { return counts_[static_cast<size_t>(Seen::kRunning)]; }
  int succeeded() const { return counts_[static_cast<size_t>(Seen::kSucceeded)]; }
  int failed() const { return counts_[static_cast<size_t>(Seen::kFailed)]; }
  const std::optional<Ending>& end() const { return end_; }
  int64_t ended_us() const { return ended_us_; }

  bool Reported(int position) const {
    return static_cast<size_t>(position) < seen_.size() &&
           seen_[static_cast<size_t>(position)] != Seen::kNever;
  }
  // Needs kTasks, and Reported().
  const Task& TaskAt(int position) const { return tasks_[static_cast<size_t>(position)]; }
  int PositionOf(int task) const;  // in the array; -1: there is no such task

 private:
  enum class Seen : uint8_t { kNever, kRunning, kSucceeded, kFailed };

  void TakeLine(std::string_view text);
  void TakeTask(int task, const Task& now);

  const ArraySpec* array_;
  ReportDetail detail_;
  ReportBounds left_;
  std::vector<int> before_;  // tasks before each range
  std::vector<Seen> seen_;   // by position; empty until a task is reported
  std::vector<Task> tasks_;
  std::array<int, 4> counts_{};
  std::optional<Ending> end_;
  int64_t ended_us_ = 0;
};

// Calls `act(position, index)` for each task of an array, in order.
template <typename Act>
void ForEachTask(const ArraySpec& array, const Act& act) {
  int position = 0;
  for (const ArraySpec::Range& range : array.ranges) {
    for (int64_t index = range.first; index <= range.last; index += range.step)
      act(position++, static_cast<int>(index));
  }
}

}  // namespace overcap
