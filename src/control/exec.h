// SPDX-License-Identifier: Apache-2.0
// Runs a command beside a running job: in its folder, with its environment and GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster_sessions.h"
#include "model/job_record.h"

namespace overcap {

using ExecPlan = Replacement;

// On this machine. `argv` empty: the user's shell. kConflict when the job does not run now. `terminal` is the
// caller's TERM, "" for none.
Result<ExecPlan> PlanExec(const JobRecord& record, std::vector<std::string> argv,
                          const std::string& terminal);

// The variables of rank 0 of an attempt; kUnavailable when it has not come so far.
Result<std::vector<std::string>> RankVariables(const JobSpec& spec, const std::string& attempt_folder);
// Where the ranks of that attempt start.
std::string RankFolder(const JobSpec& spec, const std::string& attempt_folder);

// Becomes that program; returns only when it cannot.
Error Become(const ExecPlan& plan);

}  // namespace overcap
