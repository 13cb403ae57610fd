// SPDX-License-Identifier: Apache-2.0
// People inside a cluster's allocations: shells and commands beside a running job.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/job_record.h"
#include "model/job_spec.h"

namespace overcap {

// A program that takes the place of this one (execve).
struct Replacement {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string folder;
};

struct AttachRequest {
  std::vector<std::string> command;  // empty: the user's shell
  std::string node;                  // "": the job's first one; else one of its nodes
  bool job_environment = true;       // that of rank 0 and the job's folder; false: a fresh login's
  bool terminal = false;             // the caller has one
};

class ClusterSessions {
 public:
  virtual ~ClusterSessions() = default;

  // Beside a job that runs: in its allocation, under its limits. kConflict when it does not run now, kUsage
  // for a node that it does not have.
  virtual Result<Replacement> PlanAttach(const JobRecord& record, const AttachRequest& request) = 0;
  // In a new allocation with the spec's resources, which ends with it. `spec.command` empty: the user's
  // shell.
  virtual Result<Replacement> PlanSession(const JobSpec& spec, bool terminal) = 0;
  // The nodes of a job that runs, in the cluster's order.
  virtual Result<std::vector<std::string>> NodesOf(const JobRecord& record) = 0;
};

}  // namespace overcap
