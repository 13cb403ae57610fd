// SPDX-License-Identifier: Apache-2.0
// Why a job waits, or how it ended, with the numbers behind it and what would start sooner. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster_picture.h"
#include "model/job_record.h"
#include "sched/forecast/correction.h"

namespace overcap {

struct WhyCap {
  std::string name;   // "lab 'lab-a'"
  std::string thing;  // "GPUs"
  int cap = 0, used = 0;
  std::vector<std::pair<std::string, int>> by;  // who uses how much, most first
};

// When it starts, by replays of the queue.
struct WhyStart {
  int64_t p50_us = 0, p90_us = 0;  // 0: not known
  bool now = false;
  int replays = 0;
  int64_t past_runs = 0, own_runs = 0;  // that run times were learned from; 0: time limits only
  std::vector<std::string> assumed;
  forecast::Correction correction;                   // that is in p50_us and p90_us
  int64_t foreseen_p50_us = 0, foreseen_p90_us = 0;  // without it; 0: there is none
};

// What would start sooner.
struct WhyOffer {
  std::string change;    // "overcap", "6 GPUs instead of 8"
  int64_t start_us = 0;  // P50
  bool now = false;
  std::string note;  // what else it means; may be empty
};

struct WhyAnswer {
  std::string text;                // one line: the reason
  std::string reason;              // the cluster's own word; may be empty
  std::vector<std::string> facts;  // one line each: the numbers behind it
  std::vector<std::string> sooner;
  int64_t estimated_start_us = 0;  // the cluster's own guess; 0: it made none
  std::optional<WhyCap> cap;
  std::optional<int> jobs_ahead, gpus_ahead;
  std::optional<WhyStart> start;
  std::string no_promise;  // why there is no start; one line
  std::vector<WhyOffer> offers;
};

// `picture` may be null: clusters that are not shared say all in the record.
WhyAnswer ExplainJob(const JobRecord& record, const ClusterPicture* picture, int64_t now_us);

// The position of the row of the job that says most: one that waits, else one that runs; nothing: it is not
// there.
std::optional<size_t> RowOf(const ClusterPicture& picture, const JobRecord& record);

std::string WhyToJson(const JobRecord& record, const WhyAnswer& answer);

}  // namespace overcap
