// SPDX-License-Identifier: Apache-2.0
// The PBS job that holds this shell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/detect/detect.h"
#include "launch/detect/found_job.h"

namespace overcap {

// The job that the variables name. nullopt when there is none and, with a warning, when its node file cannot
// be read: PBS removes that with the job, so the variables are left over.
std::optional<FoundJob> PbsJobOfVariables(const DetectInputs& inputs, std::vector<std::string>* warnings);

// The user's newest job that holds this host, as qstat tells; its variables are in `restored`. Where the
// job's own node file cannot be read, one is written. No answer is a warning, and `reachable`
// false.
std::optional<FoundJob> FindPbsJob(const DetectInputs& inputs, std::vector<std::string>* warnings,
                                   bool* reachable);

// Whether it is worth asking `program`: PBS seems to be set up here.
bool PbsIsSetUp(const DetectInputs& inputs, const std::string& program);

// Asks qstat; gives up after 3 s.
JobLife AskPbsLife(Programs& programs, const std::string& id);

}  // namespace overcap
