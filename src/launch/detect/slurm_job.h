// SPDX-License-Identifier: Apache-2.0
// The Slurm job that holds this shell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/detect/detect.h"
#include "launch/detect/found_job.h"

namespace overcap {

// The job that the variables name. nullopt when there is none, and, with a warning, when squeue says that it
// is over. Does squeue not answer, the variables are believed, with a warning.
std::optional<FoundJob> SlurmJobOfVariables(const DetectInputs& inputs, std::vector<std::string>* warnings);

// The user's newest job that holds this host, as squeue tells; its variables are in `restored`. No
// answer is a warning, and `reachable` false.
std::optional<FoundJob> FindSlurmJob(const DetectInputs& inputs, std::vector<std::string>* warnings,
                                     bool* reachable);

// Whether it is worth asking `program`: Slurm seems to be set up here.
bool IsWorthAskingSlurm(const DetectInputs& inputs, const std::string& program);

// Asks squeue; gives up after 3 s.
JobLife AskSlurmLife(Programs& programs, const std::string& id);

}  // namespace overcap
