// SPDX-License-Identifier: Apache-2.0
// What the parts of the Slurm driver share: settings, Slurm's programs, the mirror.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster_settings.h"
#include "clusters/slurm/mirror.h"
#include "clusters/slurm/tool_call.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

class SlurmContext {
 public:
  explicit SlurmContext(ClusterSettings settings);
  virtual ~SlurmContext() = default;

  const ClusterSettings& settings() const { return settings_; }
  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }
  uid_t user_id() const;
  std::string JobFolder(std::string_view id) const;  // <root>/jobs/<id>

  // The absolute path of one of Slurm's programs; kUnavailable "there is no 'sbatch' here" with a hint.
  virtual Result<std::string> Program(std::string_view name) const;
  // Runs one of them with the variables of tool_variables.h; `argv[0]` is its name. An error with
  // kUnavailable when it does not come back in time. A status other than 0 is no error of this function.
  Result<ToolAnswer> Call(std::vector<std::string> argv, std::chrono::milliseconds timeout);
  // The same with an environment of the caller's. `program`: of Program().
  virtual Result<ToolAnswer> CallProgram(SpawnRequest request, std::chrono::milliseconds timeout);
  // The same, only begun: it reads what it is given.
  virtual Result<std::unique_ptr<ToolRun>> StartProgram(SpawnRequest request,
                                                        std::chrono::milliseconds timeout);
  // The same, and a status other than 0 is the error that ReadToolFailure() makes of it. Gives its stdout.
  Result<std::string> Ask(const std::vector<std::string>& argv, std::chrono::milliseconds timeout);
  // The environment in which one of Slurm's programs runs, NAME=VALUE.
  std::vector<std::string> ToolEnvironment(std::string_view program) const;

  // The one way to read the controller. Sources: SqueueCommand(), SinfoCommand(), SacctCommand().
  Mirror& mirror();

 private:
  ClusterSettings settings_;
  PosixClock clock_;
  KernelRandom random_;
  std::unique_ptr<Mirror> mirror_;  // made when it is first needed
};

}  // namespace overcap
