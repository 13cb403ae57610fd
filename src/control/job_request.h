// SPDX-License-Identifier: Apache-2.0
// What a user asks for, before defaults are filled in and anything is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "control/config.h"
#include "model/job_spec.h"
#include "model/machine.h"

namespace overcap {

struct JobRequest {
  std::vector<std::string> command;
  std::string folder;                    // the current folder, absolute: what is captured
  std::string workdir;                   // --workdir; empty: the folder
  std::vector<std::string> environment;  // the submitter's, NAME=VALUE
  std::vector<std::string> env;          // --env
  std::string user;
  std::string name;
  std::optional<int> gpus;
  std::optional<int> nodes;
  int max_nodes = 0;                 // with `nodes` a range: an elastic job; 0: none
  std::optional<int> gpus_per_node;  // instead of `gpus`
  std::optional<int> ranks_per_node;
  bool one_rank_per_node = false;
  std::string gpu_type;
  std::optional<int> cpus;
  std::optional<int64_t> mem_bytes;
  std::optional<int64_t> time_seconds;
  Placement placement;
  std::vector<std::string> mounts;  // --mount, as typed
  ArraySpec array;
  std::vector<SweepAxis> sweep;   // with its array
  std::vector<Dependency> after;  // whole ids
  bool hold = false;
  std::optional<bool> requeue;
  std::optional<bool> requeue_on_timeout;
  std::optional<int64_t> warn_seconds;
  bool warn_shell = false;
  std::optional<int> max_restarts;
  int priority = 0;
  std::string batch_script;  // the command runs this script (its path in the folder), which has directives
  std::vector<std::string> notes;  // what the user should know, one line each
};

// The resources of a request: what it says, else what the configuration says, else one GPU where there are
// any, one rank per GPU, and the GPUs' share of the processors of the nodes that match.
Result<Resources> ChooseResources(const JobRequest& request, const Config& config,
                                  const std::vector<NodeKind>& nodes);

// The node whose share of processors fits every node that `resources` and `placement` allow: of those, the
// one with the fewest for each GPU; without GPUs the one with the most. nullptr: none matches, or none is
// known.
const Machine* NodeForDefaults(const std::vector<NodeKind>& nodes, const Resources& resources,
                               const Placement& placement);

// Where the ranks start.
struct Workdir {
  std::string path;    // absolute
  bool inside = true;  // of the folder: then `inner` is its path in it, "" for the folder itself
  std::string inner;
};
// kUsage when there is no such folder.
Result<Workdir> FindWorkdir(const JobRequest& request);

}  // namespace overcap
