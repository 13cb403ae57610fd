// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace overcap {

// What happened to the group of an elastic launch, from events.jsonl of its folder. Empty when it was not
// elastic. Lines that are cut off or make no sense are left out.
struct GroupStory {
  std::vector<std::string> json;   // each event, as it was written
  std::vector<std::string> lines;  // for people
};
GroupStory ReadGroupStory(const std::string& launch_folder);

}  // namespace overcap
