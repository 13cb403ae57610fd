// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "launch/rank_threads.h"
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

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT, and OMP_NUM_THREADS
// where the user has not set it. What is not known (-1, "", 0) is taken out, so that nothing of a launch
// around this one is left.
void SetRankVariables(const RankPlace& place, const std::string& master_addr, int master_port,
                      const RankCpus& cpus, Variables* variables);

}  // namespace overcap
