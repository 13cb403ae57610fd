// SPDX-License-Identifier: Apache-2.0
// A shared cluster at one moment: nodes, partitions, labs with their caps, and everybody's jobs. Data only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/job_state.h"

namespace overcap {

struct TypedGpus {
  std::string type;  // as the cluster calls it; "": not told
  int count = 0;
  bool operator==(const TypedGpus&) const = default;
};

struct PictureNode {
  std::string name;
  std::string state;   // the cluster's own word
  bool usable = true;  // new jobs may start there
  std::string reason;  // why it is not, as an administrator wrote it
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  std::vector<TypedGpus> gpus, gpus_used;  // by type
  int cpus = 0, cpus_used = 0;
  double load = -1;  // -1: not known
  int64_t mem_bytes = 0, mem_used = 0;
  std::vector<std::string> users;  // who has something there, sorted
};

struct PicturePartition {
  std::string name;
  bool is_default = false, up = true;
  int64_t time_limit_s = 0;  // 0: none
  int priority_tier = 0;
  bool preemptable = false;  // jobs there may be stopped for others
  bool overcap = false;      // use of others' idle GPUs: counted apart
  std::string qos;
  std::vector<std::string> allowed_accounts;  // empty: all
  int gpus_total = 0, gpus_free = 0, nodes = 0;
};

// A lab is what the scheduler calls an account.
struct PictureLab {
  std::string name, parent;
  std::optional<int> gpu_cap;       // none: no cap
  std::vector<TypedGpus> gpu_caps;  // by type, where those are capped
  std::optional<int> cpu_cap, max_jobs;
  std::vector<std::string> users;
};

struct PictureJob {
  std::string id;         // ours; "": not submitted with Overcap
  std::string native_id;  // "123", "123_4", "123_[5-9]"
  std::string user, lab, partition, qos, name;
  std::vector<std::string> nodes;  // while it runs
  JobState state = JobState::kUnknown;
  std::string raw_state, reason;           // reason: the cluster's own word
  bool overcap = false;                    // in an overcap partition
  int tasks = 1;                           // waiting tasks of an array stand in one row
  int gpus = 0, cpus = 0, node_count = 0;  // of one task
  std::vector<TypedGpus> gpu_types;
  int64_t submitted_us = 0, started_us = 0, estimated_start_us = 0, time_limit_s = 0;
  int64_t priority = 0;
  std::string dependency;
};

struct ClusterPicture {
  std::vector<PictureNode> nodes;
  std::vector<PicturePartition> partitions;
  std::vector<PictureLab> labs;  // empty where the scheduler keeps no accounts
  std::vector<PictureJob> jobs;  // waiting and running, of everybody
  int64_t taken_us = 0;
  std::string stale;  // "": fresh; else why it could not be asked again
};

}  // namespace overcap
