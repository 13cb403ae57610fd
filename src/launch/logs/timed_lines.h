// SPDX-License-Identifier: Apache-2.0
// The lines of rank logs with the time at which each began, of several ranks in the order in which they came
// (docs/formats/launch-folder.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

struct TimedLine {
  int rank = 0;
  int stream = 1;         // that its first byte came from
  int64_t time_us = 0;    // since 1970; 0: not told
  std::string_view text;  // without its newline; into the log
};

// Of text that stands at byte `begin` of the log. `times` is the content of rank-R.times: lines that are cut
// off or make no sense are left out.
std::vector<TimedLine> LinesOf(int rank, std::string_view log, std::string_view times, int64_t begin = 0);

// All of them by time; lines of one rank stay in their order.
std::vector<TimedLine> InOrderOfTime(std::vector<std::vector<TimedLine>> ranks);

}  // namespace overcap
