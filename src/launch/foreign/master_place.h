// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launch/rank_variables.h"
#include "sys/variables.h"

namespace overcap {

// Where the ranks meet: rank 0's host and a port of it.
struct MasterPlace {
  std::string addr;  // "": not known
  int port = 0;
  bool operator==(const MasterPlace&) const = default;
};

// The same for all ranks of a launch, without asking anybody: OVERCAP_MASTER_ADDR and OVERCAP_MASTER_PORT,
// which `overcap launch` sets, else the user's MASTER_ADDR and MASTER_PORT, else the first host of the Slurm
// step or `first_host` (of a PBS node file), 127.0.0.1 when all ranks are on one, and a port in [20000,
// 32767] that follows from the job and step, or from `launcher_id`, which tells launches on one machine
// apart.
MasterPlace MasterPlaceFrom(const Variables& variables, const RankPlace& place, const std::string& first_host,
                            int launcher_id);

}  // namespace overcap
