// SPDX-License-Identifier: Apache-2.0
#include "agent/script_tools.h"

#include <algorithm>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "model/job_id.h"
#include "sys/process.h"

namespace overcap {
namespace {

// The file of the script: the first word behind the interpreter that is no option of it.
std::string ScriptName(const std::vector<std::string>& command) {
  const auto script = std::find_if(command.begin() + 1, command.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
  return script == command.end() ? "" : script->substr(script->rfind('/') + 1);
}

}  // namespace

Result<void> MakeScriptTools(const AttemptFolder& attempt, const std::string& program) {
  const std::string folder = attempt.ScriptTools();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return Fail(ErrnoError(errno, StrCat("cannot make '", folder, "'")));
  for (const char* name : {"srun", "scontrol"}) {
    const std::string path = StrCat(folder, "/", name);
    if (symlink(program.c_str(), path.c_str()) != 0 && errno != EEXIST)
      return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
  }
  return {};
}

void SetScriptVariables(const JobSpec& spec, const AgentOptions& options, const std::string& folder,
                        Variables* variables) {
  const std::vector<std::string> all = variables->entries();
  for (const std::string& entry : all) {
    if (entry.starts_with("SLURM")) variables->Remove(std::string_view(entry).substr(0, entry.find('=')));
  }
  const int tasks = std::max(1, spec.resources.ranks_per_node);
  variables->Set("SLURM_JOB_ID", std::to_string(JobNumber(spec.id)));
  variables->Set("SLURM_JOB_NAME", spec.name.empty() ? ScriptName(spec.command) : spec.name);
  variables->Set("SLURM_JOB_NUM_NODES", "1");
  variables->Set("SLURM_NNODES", "1");
  variables->Set("SLURM_NTASKS", std::to_string(tasks));
  variables->Set("SLURM_NPROCS", std::to_string(tasks));
  for (const char* name : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"}) variables->Set(name, "0");
  if (spec.resources.cpus >= tasks)
    variables->Set("SLURM_CPUS_PER_TASK", std::to_string(spec.resources.cpus / tasks));
  variables->Set("SLURM_GPUS_ON_NODE", std::to_string(options.gpus.size()));
  variables->Set("SLURM_RESTART_COUNT", std::to_string(options.attempt - 1));
  variables->Set("SLURM_SUBMIT_DIR", folder);
  if (!spec.array.empty()) {
    variables->Set("SLURM_ARRAY_JOB_ID", std::to_string(JobNumber(spec.id)));
    variables->Set("SLURM_ARRAY_TASK_COUNT", std::to_string(spec.array.Count()));
    variables->Set("SLURM_ARRAY_TASK_ID", "");  // until SetScriptTask()
  }
  const std::string path(PathOf(variables->entries()));
  variables->Set("PATH", StrCat(AttemptFolder(options).ScriptTools(), ":", path));
}

void SetScriptTask(const JobSpec& spec, int task, Variables* variables) {
  variables->Set("SLURM_ARRAY_TASK_ID", std::to_string(task));
  variables->Set("SLURM_JOB_ID", std::to_string(JobNumber(spec.id) + task));
}

}  // namespace overcap
