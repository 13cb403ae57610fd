// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "launch/rank_threads.h"
#include "launch/torch_run.h"
#include "sys/variables.h"

namespace overcap {

// A rank's place among the others, as its launcher told it.
struct RankPlace {
  int rank = 0, world_size = 1, local_rank = 0, local_world_size = 1;
  int node_rank = 0;  // -1: nobody told, and it cannot be worked out (uneven hosts without a plan)
  std::string from;   // "OMPI_COMM_WORLD_*": which family of variables said so
  bool operator==(const RankPlace&) const = default;
};

// From OMPI_COMM_WORLD_*, PALS_*, PMI_* with MPI_LOCALRANKID, SLURM_*, PMIX_*, the innermost launcher first:
// under mpirun in a batch job the batch step's SLURM_PROCID says nothing. OVERCAP_LAUNCH_PLAN, where it is
// set, says which of them it is, and the node ranks. kNotFound when there is no launcher around us; kCorrupt,
// naming the variable, when one holds no number or contradicts another.
Result<RankPlace> RankPlaceFrom(const Variables& variables);

// All that a rank learns from its variables.
struct RankTold {
  RankPlace place;
  std::string master_addr;
  int master_port = 0;
  RankCpus cpus;
  TorchRun run;
};

// The one table of a rank's variables, for `launch`, `rank`, `submit` and elastic groups: all that torchrun
// sets, and NODE_RANK. What is not known (-1, "", 0) is removed, so that no variable of a launch around this
// one is left. OMP_NUM_THREADS and TORCH_NCCL_ASYNC_ERROR_HANDLING of the user are kept.
void SetRankVariables(const RankTold& told, Variables* variables);

}  // namespace overcap
