// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "sys/variables.h"

namespace overcap {

// A rank's place among the others, as its launcher told it.
struct RankPlace {
  int rank = 0, world_size = 1, local_rank = 0, local_world_size = 1, node_rank = 0;
  std::string from;  // "OMPI_COMM_WORLD_*": which family of variables said so
  bool operator==(const RankPlace&) const = default;
};

// From OMPI_COMM_WORLD_*, PALS_*, PMI_* with MPI_LOCALRANKID, PMIX_*, SLURM_*, the innermost launcher first:
// under mpirun in a batch job the batch step's SLURM_PROCID says nothing. kNotFound when there is no launcher
// around us; kCorrupt, naming the variable, when one holds no number or contradicts another.
Result<RankPlace> RankPlaceFrom(const Variables& variables);

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, and MASTER_ADDR and MASTER_PORT.
void SetRankVariables(const RankPlace& place, const std::string& master_addr, int master_port,
                      Variables* variables);

}  // namespace overcap
