// SPDX-License-Identifier: Apache-2.0
#include "agent/script_tools.h"

#include <algorithm>
#include <charconv>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr int64_t kEpoch = 1'577'836'800;  // 2020-01-01

}  // namespace

int64_t ScriptNumber(std::string_view job_id) {
  const size_t second = job_id.rfind('_');
  const size_t first = job_id.rfind('_', second - 1);
  const int64_t seconds = ParseInt(job_id.substr(first + 1, second - first - 1)).value_or(kEpoch);
  const std::string_view hex = job_id.substr(second + 1);
  uint32_t random = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), random, 16);
  return (((seconds - kEpoch) & 0x7fff'ffff) << 32) | random;
}

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
  variables->Set("SLURM_JOB_ID", std::to_string(ScriptNumber(spec.id)));
  variables->Set("SLURM_JOB_NAME", spec.name);
  variables->Set("SLURM_JOB_NUM_NODES", "1");
  variables->Set("SLURM_NNODES", "1");
  variables->Set("SLURM_NTASKS", std::to_string(tasks));
  if (spec.resources.cpus >= tasks)
    variables->Set("SLURM_CPUS_PER_TASK", std::to_string(spec.resources.cpus / tasks));
  variables->Set("SLURM_GPUS_ON_NODE", std::to_string(options.gpus.size()));
  variables->Set("SLURM_RESTART_COUNT", std::to_string(options.attempt - 1));
  variables->Set("SLURM_SUBMIT_DIR", folder);
  const std::string_view path = PathOf(variables->entries());
  if (!spec.array.empty()) SetScriptTask(spec, 0, variables);
  variables->Set("PATH", StrCat(AttemptFolder(options).ScriptTools(), ":", path));
}

void SetScriptTask(const JobSpec& spec, int task, Variables* variables) {
  const int64_t number = ScriptNumber(spec.id);
  variables->Set("SLURM_ARRAY_JOB_ID", std::to_string(number));
  variables->Set("SLURM_ARRAY_TASK_COUNT", std::to_string(spec.array.Count()));
  variables->Set("SLURM_ARRAY_TASK_ID", std::to_string(task));
  variables->Set("SLURM_JOB_ID", std::to_string(number + task));
}

}  // namespace overcap
