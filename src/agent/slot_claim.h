// SPDX-License-Identifier: Apache-2.0
// How an agent comes to own a slot: exactly one of all that ever try does.
#pragma once

#include <optional>
#include <string>

#include "agent/attempt_folder.h"
#include "agent/report_file.h"
#include "base/result.h"
#include "model/agent_report.h"

namespace overcap {

Claim OwnClaim();  // of this process

// The report of the slot, with room for the ending: who has claimed must be able to say how it ended. An
// empty optional: somebody else has the slot, nothing was written.
Result<std::optional<ReportFile>> ClaimSlot(const AttemptFolder& attempt, const Claim& claim);

struct ClaimedAttempt {
  int number = 0;
  ReportFile report;
};
// Makes the first attempt-N folder from `first` on that is not there, with slot 0 claimed in it: it appears
// with its claim, so that of two starts of the same job the second sees that it is one. An empty optional: an
// attempt from `first` on is this very start's already (slurm_id and slurm_restart).
Result<std::optional<ClaimedAttempt>> ClaimNextAttempt(const std::string& job_dir, const Claim& claim,
                                                       int first = 1);

}  // namespace overcap
