// SPDX-License-Identifier: Apache-2.0
// What this shell may use right now: which scheduler, which job, which hosts, how many GPUs on each; and for
// every value why Overcap believes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace overcap {

enum class SchedulerKind { kLocal, kSlurm, kPbs, kMpi };  // kMpi: a launcher has already started us as a rank
const char* SchedulerName(SchedulerKind scheduler);       // "local", "slurm", "pbs", "mpi"

struct AllocatedHost {
  std::string name;
  int slots = 0;  // ranks it takes, from a host file or the scheduler; 0: nobody has said
  int gpus = -1;  // -1: not known; taken as those of this host
  bool operator==(const AllocatedHost&) const = default;
};

struct Allocation {
  SchedulerKind scheduler = SchedulerKind::kLocal;
  bool in_job = false;  // false: no job of the scheduler holds this shell (a login node, a plain machine)
  std::string job_id;   // "" outside a job
  std::string machine;  // name of the site file that fits, else this host's name
  std::string this_host;
  std::vector<std::string> outside_job;  // hosts of a host file that the job does not have
  std::vector<AllocatedHost> hosts;      // never empty, each once; in the scheduler's order
  std::string started_by;  // "OMPI_COMM_WORLD_RANK": a launcher has already started us as a rank; "": none
  bool gpus_from_scheduler = false;  // the job was given them: its own launcher may ask for them
  std::string gpu_type;              // normalised ("a100"), "" when not known
  std::vector<std::pair<std::string, std::string>> restored;  // the job's variables that this shell lacked
  std::vector<std::string> warnings;                          // one line each

  struct Reasons {  // "SLURM_JOB_NODELIST", "qstat: job 123 runs on this host", "no scheduler was found"
    std::string scheduler, job_id, machine, hosts, gpus, gpu_type;
  } reasons;
};

}  // namespace overcap
