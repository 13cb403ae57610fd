// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sys/variables.h"

namespace overcap {

// The launcher that has started this very process as a rank.
struct StartedBy {
  std::string variable;     // "OMPI_COMM_WORLD_RANK"; "": none has
  bool of_several = false;  // there are other ranks, or it is not told
};

// A batch script, an interactive shell of Slurm (srun --pty) or of the extern step is no rank.
StartedBy StartedByLauncher(const Variables& variables);

}  // namespace overcap
