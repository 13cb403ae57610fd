// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_store.h"

namespace overcap {

// What the agent of one slot is told on its command line; the rest stands in the job's folder.
struct AgentOptions {
  std::string job_dir;    // <root>/jobs/<id>
  std::string store_dir;  // <root>/store
  int attempt = 1;
  int slot = 0;
  std::vector<int> gpus;         // what its ranks may see
  std::vector<int> cpus;         // what they may run on; empty: all
  std::vector<int> retry_tasks;  // arrays: tasks (by index) to run before any new one
  int64_t grace_seconds = 10;    // between TERM and KILL
  int64_t time_seconds = 0;      // in the place of the spec's limits; 0: those
  int64_t memory_mb = 0;
  bool cgroups = true;  // false: limits are kept by looking, as on machines that give us no group
  // Whose job it is: "" is the embedded engine, which says all of the above. "slurm": a batch script; attempt
  // and slot are found, and processors and GPUs are as Slurm has given them.
  std::string under = {};
  int nodes = 1;  // elastic jobs: agents on this machine, each with its share of the above
  // Of jobs that come through a store to a node that does not see the root (docs/formats/job-store.md): the
  // folder is then the node's own.
  std::string id = {};
  JobStore via = {};
  std::string node_folder = {};
  int64_t backlog = int64_t{4} << 30;
  // No GPU but `gpus` can be opened here, and CUDA numbers those from 0.
  bool private_gpus = false;
  int64_t memory_bytes = 0;  // overrides the spec's and memory_mb; 0: does not
  bool operator==(const AgentOptions&) const = default;
};

// `--job DIR --store DIR --attempt N --slot S --gpus 0,1 --cpus 0-3 [--retry-tasks 17,18] [--grace 10]
// [--nodes 4] [--time 3600] [--memory MB | --memory-bytes N] [--cgroups no]`, or `--job DIR --store DIR
// --under slurm [--grace 10]`, or `--id ID --via STORE --node-folder DIR --under slurm`, which makes a job
// and a store folder of the node's; also `--flag=value`; an empty list means none. kUsage names the flag.
Result<AgentOptions> ParseAgentOptions(const std::vector<std::string>& args);

// "0-3,8" -> {0,1,2,3,8}; "" -> {}.
Result<std::vector<int>> ParseIndexList(std::string_view text);

}  // namespace overcap
