// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/job_record.h"

namespace overcap {

// What happened to the group of an elastic launch or job, from its events.jsonl. Empty when it was not
// elastic. Lines that are cut off or make no sense are left out.
struct GroupStory {
  std::vector<std::string> json;   // each event, as it was written
  std::vector<std::string> lines;  // for people
};
GroupStory ReadGroupStory(const std::string& launch_folder);

// Of a job, through all its attempts.
GroupStory ReadJobStory(const JobRecord& record);

}  // namespace overcap
