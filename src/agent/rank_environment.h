// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/options.h"
#include "launch/rank_threads.h"
#include "launch/torch_run.h"
#include "model/job_spec.h"

namespace overcap {

// Where the ranks of an attempt stand.
struct RankSetting {
  std::string folder;  // where they start
  int master_port = 0;
  // Variables that the cluster has set for this job, over the submitter's. Where there are any the GPUs are
  // theirs, not those of the options.
  std::vector<std::string> cluster = {};
  RankCpus cpus = {};
  bool script_tools = false;  // it is a batch script that finds srun and scontrol here (script_tools.h)
};

// The whole environment of one rank of the first node, NAME=VALUE: `blob` (NUL-separated, the submitter's)
// under what Overcap says about the job. A batch script is no rank, and what it starts must not take it for
// one. For arrays the variables of the task are the last ones, see SetTask().
std::vector<std::string> RankEnvironment(std::string_view blob, const JobSpec& spec,
                                         const AgentOptions& options, const RankSetting& setting, int rank);

// What the ranks of an attempt have in common.
TorchRun RunOf(const JobSpec& spec, const AgentOptions& options);

// Names the task, in an environment that RankEnvironment made for this array.
void SetTask(std::vector<std::string>* environment, const JobSpec& spec, const AgentOptions& options,
             int task, int attempt);
// $OVERCAP_STATE_DIR: of the job, or of one task of an array.
std::string StateFolder(const AgentOptions& options);
std::string StateFolder(const AgentOptions& options, int task);
void SetMasterPort(std::vector<std::string>* environment, int port);

}  // namespace overcap
