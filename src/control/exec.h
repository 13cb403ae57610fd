// SPDX-License-Identifier: Apache-2.0
// Runs a command beside a running job: in its folder, with its environment and GPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/job_record.h"

namespace overcap {

struct ExecPlan {
  std::string program;  // absolute
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string folder;
};

// kConflict when the job does not run now. `terminal` is the caller's TERM, "" for none.
Result<ExecPlan> PlanExec(const JobRecord& record, std::vector<std::string> argv,
                          const std::string& terminal);

// Becomes that program; returns only when it cannot.
Error Become(const ExecPlan& plan);

}  // namespace overcap
