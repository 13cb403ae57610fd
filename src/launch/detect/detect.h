// SPDX-License-Identifier: Apache-2.0
// Finds out where this shell is: which scheduler's job, which hosts, how many GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/detect/gpu_probe.h"
#include "launch/detect/programs.h"
#include "sys/files.h"
#include "sys/variables.h"

namespace overcap {

struct DetectInputs {
  const Variables& variables;
  Programs& programs;
  Files& files;  // node files, pbs.conf
  GpuProbe probe_gpus;
  std::string this_host;     // as gethostname() says
  std::string user;          // whose jobs are looked for
  std::string state_folder;  // <root>: a node file that the scheduler does not give is written to env/ in it
  std::optional<std::vector<AllocatedHost>> hostfile = {};  // of --hostfile: in the place of the hosts found
  std::string hostfile_name = {};                           // for the reason
  // Of the site file; -1, 0 and "": it does not say.
  std::string site_name = {};
  std::string site_reason = {};
  int site_gpus = -1;
  int site_slots = 0;
  std::string site_gpu_type = {};
  // What overcap.yaml declares for this machine.
  int declared_gpus = -1;
  std::string declared_gpu_type = {};
};

// In this order: $OVERCAP_SCHEDULER, a live PBS job, a live Slurm job, an MPI already started around us,
// a scheduler whose qsub or sbatch can be reached, this machine alone. A shell on a host of a job without the
// job's variables is in that job: they are in `restored`.
// kUsage for a bad $OVERCAP_SCHEDULER. Whatever a scheduler's programs do wrong is a warning; each has a
// deadline, and none is started where there is no scheduler.
Result<Allocation> DetectAllocation(const DetectInputs& inputs);

}  // namespace overcap
