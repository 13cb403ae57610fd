// SPDX-License-Identifier: Apache-2.0
// `srun` and `scontrol` for a batch script on this machine's engine: links to this program
// (agent/script_tools.h). What they cannot do without Slurm they refuse.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/hidden_commands.h"

namespace overcap {

// A step of srun on one machine.
struct ScriptStep {
  int tasks = 1;
  bool label = false;            // each line of output gets the number of its task
  std::string folder;            // where it starts; "": the current one
  std::vector<std::string> env;  // NAME=VALUE of --export
  std::vector<std::string> command;
  std::vector<std::string> notes;  // what is different from Slurm
  bool operator==(const ScriptStep&) const = default;
};

// The words behind `srun` in a script whose job has `tasks` tasks. Pure. kUsage.
Result<ScriptStep> PlanScriptStep(const std::vector<std::string>& words, int tasks);

// nullptr: `name`, by which this program was called, is neither of the two.
HiddenCommand FindScriptProgram(std::string_view name);

// `overcap script-task -- COMMAND`: sets the variables of a task of srun from those of a rank, then becomes
// COMMAND.
Result<int> RunScriptTask(const std::vector<std::string>& words);

}  // namespace overcap
