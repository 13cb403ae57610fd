// SPDX-License-Identifier: Apache-2.0
// Pieces that the readers of traces share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sched/trace/trace.h"

namespace overcap {

// The lines of a text, one after the other, without their ends; they count from 1.
class TraceLines {
 public:
  explicit TraceLines(std::string_view text) : left_(text) {}
  bool Next(std::string_view* line);
  uint32_t number() const { return number_; }

 private:
  std::string_view left_;
  uint32_t number_ = 0;
};

// Numbers with a fraction or an exponent too; nothing for what is no finite number.
std::optional<double> TraceNumber(std::string_view text);
// Seconds since 1970: a number, "2017-10-09 07:01:55" or "2017-10-09T07:01:55Z" (taken as UTC).
std::optional<double> TraceTime(std::string_view text);
// "1-02:03:04", "02:03:04", "03:04.5" or a number of seconds.
std::optional<double> TraceDuration(std::string_view text);

// Takes the fields of a line apart at `separator`; CSV quotes are taken off.
void SplitFields(std::string_view line, char separator, std::vector<std::string_view>* fields);

// The record as a job of the trace, or one that is skipped and why. Times in seconds.
struct TraceRow {
  std::optional<double> submit_s, run_s, limit_s, gpus, nodes, cpus;
  std::string_view lab, user, partition, type;
};
void AddTraceRow(const TraceRow& row, uint32_t line, Trace* trace);

}  // namespace overcap
