// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/started_by.h"

#include "launch/detect/slurm_text.h"

namespace overcap {

StartedBy StartedByLauncher(const Variables& variables) {
  struct Family {
    const char *rank, *size;
  };
  static constexpr Family kFamilies[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PALS_RANKID", "PMI_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
  for (const Family& family : kFamilies) {
    if (variables.Get(family.rank).empty()) continue;
    return {family.rank, variables.Get(family.size) != "1"};
  }
  if (IsRankStep(variables.Get("SLURM_STEP_ID"), variables.Get("SLURM_STEP_NUM_TASKS"))) {
    return {"SLURM_STEP_ID", true};
  }
  return {};
}

}  // namespace overcap
