// SPDX-License-Identifier: Apache-2.0
// What the configuration says about one cluster, for its driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clusters/job_depot.h"
#include "model/machine.h"

namespace overcap {

// Of clusters that are driven by a scheduler's own programs. Empty: not said.
struct SchedulerSettings {
  std::vector<std::string> partitions;
  std::string account, qos, constraint, reservation;
  std::vector<std::string> args;                // more words for its submit program
  std::string programs;                         // the folder of its programs; "": they are on PATH
  std::string mirror_folder;                    // shared between users by an administrator
  std::vector<std::string> overcap_partitions;  // over the cap; empty: known by their names and preemption
  bool gpu_type_as_constraint = false;
  int64_t max_time_seconds = 0;  // limits of this cluster for jobs of this user; 0: none
  int max_gpus = 0;
  bool operator==(const SchedulerSettings&) const = default;
};

// Of jobs that go through a store (docs/formats/job-store.md).
struct NodeSettings {
  std::string folder;   // of jobs on each node, as written; "": in /tmp
  std::string program;  // this program on each node; "": as here
  int64_t backlog = int64_t{4} << 30;
};

struct ClusterSettings {
  std::string name;
  std::string driver;
  std::string root;                            // where this user's jobs stand
  std::string binary;                          // this program
  std::function<Machine(bool fresh)> machine;  // what this machine has to give; `fresh`: look again
  SchedulerSettings scheduler = {};
  int64_t grace_seconds = 10;  // between TERM and KILL
  NodeSettings node = {};
  std::shared_ptr<JobDepot> depot = nullptr;          // nullptr: no job has a store
  std::function<void(const std::string&)> tell = {};  // takes lines that the user should see at once
};

}  // namespace overcap
