// SPDX-License-Identifier: Apache-2.0
// `overcap env`: where this shell is, why Overcap thinks so, and the same for other shells of the job.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/launch.h"
#include "launch/detect/saved_environment.h"

namespace overcap {

struct EnvironmentReport {
  Allocation allocation;
  int world_size = 0;  // of a launch without any flag; 0: it could not be planned
  std::string world_size_reason;
  std::string launcher;  // "srun"; "" when there is none
  std::string launcher_reason;
  std::vector<std::string> launch_command;  // with CMD... for the user's; empty where no program is between
  NamedValues job_variables;
  NamedValues facts;
};

// Starts nothing but the scheduler's own programs. A launch that cannot be planned is no error.
Result<EnvironmentReport> DescribeEnvironment(const LaunchWorld& world);

// For people: `host: 4, other: 2` where GPUs differ, else the number.
std::string GpusPerHostText(const Allocation& allocation);

Result<std::string> SaveReport(const EnvironmentReport& report, const std::string& root);  // the file

struct LoadedEnvironment {
  SavedEnvironment saved;
  std::string warning;  // "": its scheduler says that the job lives, or there was none
};
// kConflict when the job is over; otherwise as LoadEnvironment().
Result<LoadedEnvironment> LoadReport(const std::string& root, std::string_view job,
                                     const Variables& variables);

}  // namespace overcap
