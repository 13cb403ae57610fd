// SPDX-License-Identifier: Apache-2.0
#include "control/script_step.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "control/batch_script.h"
#include "control/exec.h"
#include "model/agent_report.h"
#include "model/job_id.h"
#include "model/job_spec.h"
#include "sys/own_host_name.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"
#include "sys/process.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int kMostTasks = 1'000'000;

// Options about what a job gets and where: it has it already, and there is one node.
constexpr std::string_view kWithoutEffect[] = {"accel-bind",
                                               "account",
                                               "comment",
                                               "constraint",
                                               "core-spec",
                                               "cores-per-socket",
                                               "cpu-bind",
                                               "cpu-freq",
                                               "cpus-per-gpu",
                                               "cpus-per-task",
                                               "disable-status",
                                               "distribution",
                                               "exact",
                                               "exclusive",
                                               "extra-node-info",
                                               "gres",
                                               "gres-flags",
                                               "hint",
                                               "job-name",
                                               "kill-on-bad-exit",
                                               "mem",
                                               "mem-bind",
                                               "mem-per-cpu",
                                               "mem-per-gpu",
                                               "network",
                                               "nice",
                                               "no-kill",
                                               "ntasks-per-core",
                                               "ntasks-per-gpu",
                                               "ntasks-per-socket",
                                               "overcommit",
                                               "overlap",
                                               "oversubscribe",
                                               "partition",
                                               "preserve-env",
                                               "propagate",
                                               "qos",
                                               "quiet",
                                               "sockets-per-node",
                                               "threads",
                                               "threads-per-core",
                                               "unbuffered",
                                               "verbose",
                                               "wait",
                                               "whole"};

tl::unexpected<Error> Bad(const BatchOption& option, std::string_view why, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, StrCat("srun: '", option.Text(), "' ", why), std::move(hint));
}

Result<int> TasksOf(const BatchOption& option) {
  const auto count = ParseInt(option.value);
  if (!count || *count < 1 || *count > kMostTasks) return Bad(option, "is no number of tasks");
  return static_cast<int>(*count);
}

Result<void> TakeExport(const BatchOption& option, ScriptStep* step) {
  const std::vector<std::string> parts = Split(option.value, ',');
  if (std::ranges::find(parts, "ALL") == parts.end())
    return Bad(option, "cannot be had without Slurm", StrCat("--export=ALL,", option.value));
  for (const std::string& part : parts) {
    if (part == "ALL") continue;
    if (part.find('=') == std::string::npos || part.starts_with('='))
      return Bad(option, "cannot be had without Slurm", "ALL and NAME=VALUE can");
    step->env.push_back(part);
  }
  return {};
}

Result<void> TakeStream(const BatchOption& option) {
  return Bad(option, "cannot be had without Slurm",
             option.name == "input" ? "write: srun ... < FILE" : "write: srun ... > FILE");
}

// Tasks are counted before all other options are taken.
Result<void> TakeTasks(const std::vector<BatchOption>& options, ScriptStep* step) {
  for (const std::string_view name : {"ntasks-per-node", "ntasks"}) {
    for (const BatchOption& option : options) {
      if (option.name != name) continue;
      OC_TRY(tasks, TasksOf(option));
      step->tasks = tasks;
    }
  }
  return {};
}

Result<void> Take(const BatchOption& option, ScriptStep* step) {
  const std::string& name = option.name;
  if (name == "ntasks" || name == "ntasks-per-node") return {};
  if (name == "nodes") {
    if (option.value == "1" || option.value.starts_with("1-")) return {};
    return Bad(option, "cannot be had: this machine is one node");
  }
  if (name == "chdir") {
    step->folder = option.value;
    return {};
  }
  if (name == "export") return TakeExport(option, step);
  if (name == "label") {
    step->label = true;
    return {};
  }
  if (name == "gpu-bind" || name.starts_with("gpus")) {
    if (step->tasks > 1)
      step->notes.push_back(StrCat("srun: '", option.Text(), "': each task sees all GPUs of the job"));
    return {};
  }
  if (name == "mpi") {
    if (option.value == "none") return {};
    return Bad(option, "cannot be had without Slurm", "start the program with mpiexec");
  }
  if (name == "kill-on-bad-exit" && option.value == "0")
    return Bad(option, "cannot be had without Slurm: when a task fails the others are stopped");
  if (name == "output" || name == "error" || name == "input") return TakeStream(option);
  if (std::ranges::find(kWithoutEffect, name) != std::end(kWithoutEffect)) return {};
  return Bad(option, "cannot be had without Slurm");
}

void SetTask(int task, int tasks, Variables* variables) {
  variables->Set("SLURM_PROCID", std::to_string(task));
  variables->Set("SLURM_LOCALID", std::to_string(task));
  variables->Set("SLURM_NODEID", "0");
  variables->Set("SLURM_STEP_NUM_TASKS", std::to_string(tasks));
  variables->Set("SLURM_NTASKS", std::to_string(tasks));
}

Result<int> BecomeCommand(std::vector<std::string> command, const Variables& variables,
                          const std::string& folder) {
  OC_TRY(program, ResolveProgram(command[0], PathOf(variables.entries()), folder.empty() ? "." : folder));
  return Fail(Become({std::move(program), std::move(command), variables.entries(), folder}));
}

// Whether this process belongs to the script for which the links were made. What the script submits may have
// inherited its PATH, but not its SLURM_JOB_ID.
bool IsOfThisScript(const Variables& variables) {
  const std::string_view id = variables.Get("OVERCAP_JOB_ID");
  if (!IsJobId(id)) return false;
  const int64_t task = ParseInt(variables.Get("OVERCAP_TASK_ID")).value_or(0);
  return variables.Get("SLURM_JOB_ID") == std::to_string(JobNumber(id) + task);
}

// Becomes the next program of this name in PATH.
Result<int> BecomeNext(const std::string& name, const std::vector<std::string>& words,
                       const Variables& variables) {
  std::vector<std::string> rest;
  for (const std::string& folder : Split(PathOf(variables.entries()), ':')) {
    std::error_code error;
    if (!std::filesystem::equivalent(StrCat(folder, "/", name), "/proc/self/exe", error))
      rest.push_back(folder);
  }
  OC_TRY(program, ResolveProgram(name, Join(rest, ":"), "."));
  std::vector<std::string> argv = {name};
  argv.insert(argv.end(), words.begin(), words.end());
  return Fail(Become({std::move(program), std::move(argv), variables.entries(), ""}));
}

std::vector<std::string> LaunchWords(const ScriptStep& step) {
  std::vector<std::string> words = {OwnProgram(), "launch",     "-n",          std::to_string(step.tasks),
                                    "--launcher", "local",      "--tee",       step.label ? "all" : "plain",
                                    "--",         OwnProgram(), "script-task", "--"};
  words.insert(words.end(), step.command.begin(), step.command.end());
  return words;
}

Result<int> RunSrun(const std::vector<std::string>& words) {
  Variables variables = Variables::OfThisProcess();
  if (!IsOfThisScript(variables)) return BecomeNext("srun", words, variables);
  const auto tasks = ParseInt(variables.Get("SLURM_NTASKS")).value_or(1);
  OC_TRY(step, PlanScriptStep(words, static_cast<int>(std::clamp(tasks, 1LL, 1LL * kMostTasks))));
  for (const std::string& note : step.notes) dprintf(STDERR_FILENO, "%s\n", note.c_str());
  for (const std::string& entry : step.env) {
    const size_t equals = entry.find('=');
    variables.Set(entry.substr(0, equals), entry.substr(equals + 1));
  }
  if (step.tasks > 1) return BecomeCommand(LaunchWords(step), variables, step.folder);
  SetTask(0, 1, &variables);
  return BecomeCommand(std::move(step.command), variables, step.folder);
}

// The job of this script, from the variables that its agent has set.
struct ScriptJob {
  std::string folder;
  std::string attempt;  // its folder
  std::string slot;
};
Result<ScriptJob> JobAround(const Variables& variables) {
  const std::string folder(variables.Get("OVERCAP_JOB_DIR")), attempt(variables.Get("OVERCAP_ATTEMPT"));
  const std::string_view mark = variables.Get("OVERCAP_AGENT");  // ID.ATTEMPT.SLOT
  if (folder.empty() || attempt.empty() || mark.find('.') == mark.npos)
    return Fail(ErrorCode::kUsage, "scontrol: this is no batch script of a job of overcap");
  return ScriptJob{folder, StrCat(folder, "/attempt-", attempt),
                   std::string(mark.substr(mark.rfind('.') + 1))};
}

Result<void> CheckMayRequeue(const JobSpec& spec, const std::string& id, const Variables& variables) {
  if (id != variables.Get("SLURM_JOB_ID") && id != spec.id)
    return Fail(ErrorCode::kUsage,
                StrCat("scontrol: a script can requeue only its own job, not ", Quoted(id)));
  if (!spec.array.empty()) {
    return Fail(ErrorCode::kUsage, "scontrol: tasks of an array cannot requeue themselves on this machine",
                "submit them as jobs of their own");
  }
  if (spec.requeue) return {};
  return Fail(ErrorCode::kUsage, "scontrol: this job was submitted without --requeue",
              "add the line: #SBATCH --requeue");
}

// The agent learns of the request from its file, also when it ends before the signal arrives.
Result<int> Requeue(const Variables& variables, const std::string& id) {
  OC_TRY(job, JobAround(variables));
  const PosixFiles files;
  OC_TRY(text, files.Read(job.folder + "/spec.json"));
  OC_TRY(spec, SpecFromJson(text));
  OC_TRY_VOID(CheckMayRequeue(spec, id, variables));
  OC_TRY(claim_text, files.Read(StrCat(job.attempt, "/agent-", job.slot, ".claim")));
  OC_TRY(claim, ClaimFromJson(claim_text));
  const ProcessIdentity agent{static_cast<pid_t>(claim.pid), static_cast<uint64_t>(claim.start_ticks),
                              claim.boot_id};
  if (!IsAlive(agent)) return Fail(ErrorCode::kUnavailable, "scontrol: the agent of this job is gone");
  OC_TRY_VOID(PosixFiles().WriteAtomic(job.attempt + "/requeue-asked", "", true));
  if (kill(agent.pid, SIGTERM) != 0) return Fail(ErrnoError(errno, "scontrol: cannot stop this attempt"));
  return 0;
}

Result<int> RunScontrol(const std::vector<std::string>& words) {
  const Variables variables = Variables::OfThisProcess();
  if (!IsOfThisScript(variables)) return BecomeNext("scontrol", words, variables);
  if (words.size() == 2 && words[0] == "requeue") return Requeue(variables, words[1]);
  if (words.size() >= 2 && words.size() <= 3 && words[0] == "show" && words[1] == "hostnames") {
    printf("%s\n", OwnHostName().c_str());
    return 0;
  }
  return Fail(ErrorCode::kUsage, "scontrol: without Slurm there are only 'requeue JOB' and 'show hostnames'");
}

}  // namespace

Result<ScriptStep> PlanScriptStep(const std::vector<std::string>& words, int tasks) {
  OC_TRY(parsed, ParseSrunWords(words));
  ScriptStep step;
  step.tasks = tasks;
  OC_TRY_VOID(TakeTasks(parsed.options, &step));
  for (const BatchOption& option : parsed.options) OC_TRY_VOID(Take(option, &step));
  if (parsed.command.empty()) return Fail(ErrorCode::kUsage, "srun: no command was given");
  step.command = std::move(parsed.command);
  return step;
}

HiddenCommand FindScriptProgram(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);
  if (name == "srun") return RunSrun;
  if (name == "scontrol") return RunScontrol;
  return nullptr;
}

Result<int> RunScriptTask(const std::vector<std::string>& words) {
  if (words.size() < 3 || words[1] != "--") return Fail(ErrorCode::kUsage, "script-task -- COMMAND");
  Variables variables = Variables::OfThisProcess();
  const auto number = [&](const char* name) {
    return static_cast<int>(std::clamp(ParseInt(variables.Get(name)).value_or(0), 0LL, 1LL * kMostTasks));
  };
  SetTask(number("RANK"), number("WORLD_SIZE"), &variables);
  return BecomeCommand({words.begin() + 2, words.end()}, variables, "");
}

}  // namespace overcap
