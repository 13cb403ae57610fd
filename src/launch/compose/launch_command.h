// SPDX-License-Identifier: Apache-2.0
// The command line that starts the ranks, for every launcher we know. Pure: what --dry-run prints is what is
// run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/rank_plan.h"

namespace overcap {

enum class Flavour { kLocal, kSsh, kSrun, kPals, kHydra, kOpenMpi };
const char* FlavourName(Flavour flavour);  // "local", "ssh", "srun", "pals", "hydra", "openmpi"

bool StartsItself(Flavour flavour);  // local, ssh: Overcap is the launcher, there is no other program

struct Launcher {
  Flavour flavour = Flavour::kLocal;
  std::string program;    // "srun", "mpiexec", "/opt/x/mpirun"; "" for local and ssh
  int major_version = 0;  // 0: not known
  std::string reason;     // "mpiexec --version says 'PALS 1.2.1'"
};

// Which one it is by what `program --version` printed; kNotFound when it is none that we know.
Result<Launcher> LauncherOf(const std::string& program, std::string_view version_output);

struct LaunchRequest {
  Launcher launcher;
  RankPlan plan;
  bool hosts_chosen =
      false;             // by a host file, --nnodes, spares or a retry: ranks must be placed on just these
  std::string cpu_bind;  // "" : the launcher's own default (or the site's)
  std::vector<std::string> launcher_args;  // of --launcher-args and of the site, passed as they are
  std::string hostfile;                    // where a host file may be written; the plan's hosts go into it
  bool as_root = false;                    // Open MPI wants to be told
  bool oversubscribe = false;              // more ranks than cores somewhere: Open MPI wants to be told
  // The GPUs of the plan are those that the scheduler gave to the job. Only then srun may be asked for them:
  // a job that was given none (GPUs are not Slurm's business there) refuses the step.
  bool gpus_from_scheduler = false;
  std::vector<std::string> exported;  // names of variables that the ranks must see (Open MPI's -x)
  bool linked = true;  // the ranks get variables of a link to us (Open MPI's -x); not when only shown
  std::vector<std::string> rank_command;  // {"/path/overcap", "rank", "--", "python", "train.py"}
};

struct LaunchCommand {
  std::vector<std::string> argv;  // empty for local and ssh: nothing is run in between
  std::vector<std::string> env;   // NAME=VALUE beside the inherited ones; kPlanVariable is among them
  // Names that are taken out of the inherited ones before `env` is added: requests of the job that its steps
  // would inherit and that contradict the plan (SLURM_GPUS_PER_TASK and the like).
  std::vector<std::string> unset;
  std::string hostfile_text;  // to be written to LaunchRequest::hostfile; "" : none
};

// Tells `overcap rank` who started it and how many ranks are on each host: "srun:4x3,2". Without it a rank of
// Open MPI or Hydra cannot know its node rank when hosts have different numbers of ranks.
constexpr char kPlanVariable[] = "OVERCAP_LAUNCH_PLAN";

// For local and ssh the argv is empty. kUsage when this launcher cannot do
// what is asked (a cpu-bind that it does not know, an uneven plan that it cannot place).
Result<LaunchCommand> ComposeLaunch(const LaunchRequest& request);

}  // namespace overcap
