// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/compose/launch_command.h"
#include "launch/detect/programs.h"

namespace overcap {

struct ChoiceInputs {
  std::string asked =
      "auto";  // --launcher: auto, srun, mpiexec, mpirun, ssh, local, or the path of a program
  SchedulerKind scheduler = SchedulerKind::kLocal;
  bool in_job = false;
  int hosts = 1;                   // of the plan
  bool this_host_only = true;      // the plan's one host is the machine we are on
  std::string site_launcher = {};  // of the site file; "": it does not say
  std::string site_program = {};   // the same
};

// What is asked for wins, then what the site file says, then: srun in a Slurm job, the mpiexec or mpirun of a
// PBS job, ourselves on this machine, ssh to others. An mpiexec is asked which one it is (--version, 10 s).
// kUsage names a launcher that is not known, is not installed, or cannot reach the hosts.
Result<Launcher> ChooseLauncher(const ChoiceInputs& inputs, Programs& programs);

}  // namespace overcap
