// SPDX-License-Identifier: Apache-2.0
// Code of jobs through a store on nodes where no agent of the job runs: those with the other ranks.
#pragma once

#include <string>
#include <vector>

#include "agent/courier/courier_options.h"
#include "agent/options.h"
#include "agent/slurm/srun_ranks.h"
#include "base/result.h"
#include "sys/clock.h"
#include "sys/supervisor.h"

namespace overcap {

// What `overcap agent fetch` is told.
struct NodeFetch {
  std::string node_folder, job_dir, store_dir;
  JobStore via;
  std::string tree;     // "": no code; the folder is made all the same
  std::string to;       // the folder that is made
  bool remove = false;  // takes the attempt's folder away instead
};
std::vector<std::string> FetchWords(const NodeFetch& fetch);               // "fetch", ...
Result<NodeFetch> ParseFetchWords(const std::vector<std::string>& words);  // behind "fetch"

// On one node. Prints a line that FetchOnNodes() counts, or what went wrong; the status is 0 in any case.
Result<int> RunFetch(const NodeFetch& fetch, const JobStoreOpener& open);

// On all nodes of the job, by a step of srun. kConflict when the supervisor is told to stop meanwhile.
Result<void> FetchOnNodes(const NodeFetch& fetch, const SrunSetting& setting, const Clock& clock,
                          Supervisor* supervisor);

}  // namespace overcap
