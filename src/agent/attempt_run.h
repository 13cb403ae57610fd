// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/array_run.h"
#include "agent/attempt_folder.h"
#include "agent/cluster_watch.h"
#include "agent/courier/courier.h"
#include "agent/elastic/node_agents.h"
#include "agent/options.h"
#include "agent/ranks.h"
#include "agent/report_file.h"
#include "agent/slurm/srun_ranks.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "snapshot/store.h"
#include "sys/clock.h"
#include "sys/posix_files.h"
#include "sys/supervisor.h"
#include "sys/variables.h"

namespace overcap {

// What a cluster has given to the attempt; nothing of it in the embedded engine.
struct ClusterPart {
  std::vector<std::string> variables;  // for the ranks
  std::optional<SrunSetting> srun;     // several nodes: how they are reached; its folder is set here
  bool on_nodes = false;               // ranks are started on all of them by srun
  std::optional<OtherNodes> others;    // elastic jobs: nodes beside this one
  int64_t grace_us = 0;                // between TERM and KILL; 0: as the options say
  ClusterWatch* watch = nullptr;       // looks after the job while ranks run
  EndingJudge judge = {};              // arrays: of the task's ending
  Courier* courier = nullptr;          // of jobs that come through a store
  int task = -1;                       // arrays: the one task of this slot; -1: those that nobody has taken
};

// Runs a slot whose report is open, from its spec to its ending.
class AttemptRun {
 public:
  AttemptRun(const AgentOptions& options, const AttemptFolder& attempt, const Clock& clock,
             ClusterPart cluster, Supervisor* supervisor, ReportFile* report)
      : options_(options),
        attempt_(attempt),
        clock_(clock),
        cluster_(std::move(cluster)),
        supervisor_(*supervisor),
        report_(*report) {}

  Ending Run();

 private:
  Result<Ending> RunSpec();
  Result<void> MakeStateFolder();
  Result<Ending> RunInFolder(const JobSpec& spec, const std::string& blob, const std::string& folder);
  void TakeError(const Variables& submitter, Ending* ending);
  // With the code on nodes where no agent brings it.
  Result<Ending> RunWithCode(const JobSpec& spec, const std::function<Result<Ending>()>& run);
  // With the job's stores in its folder.
  Result<Ending> RunWithMounts(const JobSpec& spec, std::string_view blob,
                               const std::function<Result<Ending>()>& run);
  Result<std::string> Environment(const JobSpec& spec, const SnapshotStore* store);
  Result<Ending> RunHere(const JobSpec& spec, const RankVariables& variables, const std::string& folder);
  Result<Ending> RunOnNodes(const JobSpec& spec, const RankVariables& variables, const std::string& folder);
  Result<Ending> RunElastic(const JobSpec& spec, const RankVariables& variables, const std::string& folder);
  Result<void> ClaimNodes();
  void NotePinning(const RankGuard& guard);
  Result<Ending> RunRanks(const JobSpec& spec, Ranks* ranks);
  Result<void> WriteEnvironment(const Ranks& ranks);
  Result<Ending> RunPlain(Ranks* ranks);
  Result<Ending> RunArray(const JobSpec& spec, Ranks* ranks);

  const AgentOptions& options_;
  const AttemptFolder& attempt_;
  const Clock& clock_;
  ClusterPart cluster_;
  Supervisor& supervisor_;
  ReportFile& report_;
  PosixFiles files_;
};

}  // namespace overcap
