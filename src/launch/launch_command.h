// SPDX-License-Identifier: Apache-2.0
// The command line that starts the ranks, for every launcher we know. Pure: what --dry-run prints is what is
// run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "launch/rank_plan.h"

namespace overcap {

enum class Flavour { kLocal, kSsh, kSrun, kPals, kHydra, kOpenMpi };
const char* FlavourName(Flavour flavour);  // "local", "ssh", "srun", "pals", "hydra", "openmpi"

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
  std::vector<std::string> exported;       // names of variables that the ranks must see (Open MPI's -x)
  std::vector<std::string> rank_command;   // {"/path/overcap", "rank", "--", "python", "train.py"}
};

struct LaunchCommand {
  std::vector<std::string> argv;  // empty for local: nothing is run in between
  std::vector<std::string> env;   // NAME=VALUE beside the inherited ones
  std::string hostfile_text;      // to be written to LaunchRequest::hostfile; "" : none
};

// kUsage when this launcher cannot do what is asked (a cpu-bind that it does not know, an uneven plan that it
// cannot place).
Result<LaunchCommand> ComposeLaunch(const LaunchRequest& request);

}  // namespace overcap
