// SPDX-License-Identifier: Apache-2.0
// People inside a cluster's allocations: shells and commands beside a running job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  std::string folder;  // "": as it is
};

struct AttachRequest {
  std::vector<std::string> command;  // empty: the user's shell
  std::string node;                  // "": the job's first one; else one of its nodes
  bool job_environment = true;       // that of rank 0 and the job's folder; false: a fresh login's
  bool terminal = false;             // the caller has one
  // Its input and output are a protocol: every byte goes through at once. Its stdout may be a terminal there,
  // which it must set raw itself.
  bool stream = false;
};

// A session that was asked for, while its program runs.
struct SessionState {
  bool known = false;  // the cluster has it in its queue
  bool running = false;
  std::string waits_for;  // in plain words
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
  // How far the session with this spec.id has come, as somebody who waits may ask every second.
  virtual Result<SessionState> LookAtSession(const std::string& id) = 0;
  // The nodes of a job that runs, in the cluster's order.
  virtual Result<std::vector<std::string>> NodesOf(const JobRecord& record) = 0;
  // Names of variables that the cluster sets for a process on its node, in the form of `overcap enter
  // --here`.
  virtual std::string VariablesOfANode() const = 0;
  // Whether a line that a planned program writes to stderr tells nothing but how the command ended.
  virtual bool IsChatter(std::string_view line) const = 0;
  // What it means when this line of the launcher's stderr says that there will be no session.
  virtual std::optional<Error> FailureIn(std::string_view line) const = 0;
  // What a process that starts from elsewhere (of ssh, in no shell of the user's) needs to find the cluster
  // as this one does: NAME=VALUE, nothing secret.
  virtual std::vector<std::string> Contact() const = 0;
};

}  // namespace overcap
