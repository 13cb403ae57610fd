// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/cluster_watch.h"
#include "agent/options.h"
#include "agent/ranks.h"
#include "base/result.h"
#include "launch/foreign/launcher_runner.h"
#include "launch/runner.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/random.h"
#include "sys/variables.h"

namespace overcap {

// What srun is told about the job that it starts ranks in.
struct SrunSetting {
  std::vector<std::string> nodes;
  int gpus_per_node = 0;  // -1: not the same on all, or not known
  std::string srun, binary, folder;
  int64_t grace_us = 10'000'000;
};

// Ranks on several nodes: srun starts them, their output and ends come over links to this process.
class SrunRanks : public Ranks {
 public:
  static Result<SrunRanks> Make(const JobSpec& spec, const AgentOptions& options,
                                const RankVariables& variables, const SrunSetting& setting,
                                const Clock& clock, ClusterWatch* watch);

  std::string Words() const;  // what is run, for a shell
  size_t Size() const override { return static_cast<size_t>(attempt_.plan.world_size); }
  int MasterPort() const override { return 0; }
  const std::vector<std::string>& FirstEnvironment() const override { return attempt_.env; }
  void NameTask(int task, int attempt) override;
  // Files named rank-R.log stand in the folder of their attempt; others get a folder of their own beside
  // them, for what srun says.
  Ending Run(const std::vector<std::string>& logs, GroupObserver* observer) override;

 private:
  SrunRanks(const JobSpec& spec, const AgentOptions& options, Attempt attempt, const Clock& clock,
            ClusterWatch* watch)
      : spec_(spec), options_(options), attempt_(std::move(attempt)), clock_(clock), watch_(watch) {}
  Result<RankLogs> MakeLogs(const std::vector<std::string>& logs);

  const JobSpec& spec_;
  const AgentOptions& options_;
  Attempt attempt_;
  const Clock& clock_;
  ClusterWatch* watch_;
};

// What an end means for the attempt; nodes that failed are named.
Ending EndingOf(const AttemptEnd& end);

// How many GPUs each node has, from the job's variables.
int GpusPerNode(const Variables& variables);

}  // namespace overcap
