// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/attempt_folder.h"
#include "agent/options.h"
#include "agent/rank_group.h"
#include "agent/report_file.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "sys/clock.h"
#include "sys/posix_files.h"
#include "sys/supervisor.h"

namespace overcap {

// What a cluster has given to the attempt; nothing of it in the embedded engine.
struct ClusterPart {
  std::vector<std::string> variables;   // for the ranks
  GroupCompanion* companion = nullptr;  // looks after the job while ranks run
  int task = -1;                        // arrays: the one task of this slot; -1: those that nobody has taken
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
  Result<void> WriteEnvironment(const RankGroup& ranks);
  Result<Ending> RunPlain(RankGroup* ranks);
  Result<Ending> RunArray(const JobSpec& spec, RankGroup* ranks);

  const AgentOptions& options_;
  const AttemptFolder& attempt_;
  const Clock& clock_;
  ClusterPart cluster_;
  Supervisor& supervisor_;
  ReportFile& report_;
  PosixFiles files_;
};

}  // namespace overcap
