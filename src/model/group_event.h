// SPDX-License-Identifier: Apache-2.0
// What happens to the group of an elastic job, as its agents write it (docs/formats/elastic.md,
// "events.jsonl").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

struct GroupEvent {
  int64_t time_us = 0, epoch = 0, took_us = 0, steps_lost = -1;
  int attempt = 0;  // of the job; 0: not told
  int rank = -1, group_size = 0, world_size = 0, status = 0;
  std::string event, why, message;
  std::vector<std::string> joined, left;
};

// A line of a launch folder's events.jsonl, or of a job's; nullopt when it is none, or is cut off.
std::optional<GroupEvent> ParseGroupEvent(std::string_view line);

// For people; "": not for them.
std::string GroupEventWords(const GroupEvent& event);

}  // namespace overcap
