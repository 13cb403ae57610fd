// SPDX-License-Identifier: Apache-2.0
// Why a job waits, or how it ended, with the numbers behind it and what would start sooner. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster_picture.h"
#include "model/job_record.h"

namespace overcap {

struct WhyCap {
  std::string name;   // "lab 'lab-a'"
  std::string thing;  // "GPUs"
  int cap = 0, used = 0;
  std::vector<std::pair<std::string, int>> by;  // who uses how much, most first
};

struct WhyAnswer {
  std::string text;                // one line: the reason
  std::string reason;              // the cluster's own word; may be empty
  std::vector<std::string> facts;  // one line each: the numbers behind it
  std::vector<std::string> sooner;
  int64_t estimated_start_us = 0;  // the cluster's own guess; 0: it made none
  std::optional<WhyCap> cap;
  std::optional<int> jobs_ahead, gpus_ahead;
};

// `picture` may be null: clusters that are not shared say all in the record.
WhyAnswer ExplainJob(const JobRecord& record, const ClusterPicture* picture, int64_t now_us);

std::string WhyToJson(const JobRecord& record, const WhyAnswer& answer);

}  // namespace overcap
