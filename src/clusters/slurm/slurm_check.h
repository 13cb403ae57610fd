// SPDX-License-Identifier: Apache-2.0
// All that can be wrong between here and a Slurm cluster.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clusters/cluster_view.h"
#include "clusters/slurm/config_text.h"
#include "clusters/slurm/slurm_context.h"

namespace overcap {

// Asks the programs themselves, not the mirror: what is wrong now counts. Takes half a minute at most.
std::vector<ClusterFinding> CheckSlurm(SlurmContext* context);

// The pure parts.
std::vector<ClusterFinding> CheckSlurmConfig(const SlurmConfig& config);
// `config_text` begins with the controller's own time.
std::vector<ClusterFinding> CheckSlurmClock(std::string_view config_text, int64_t asked_us,
                                            int64_t answered_us);
std::vector<ClusterFinding> CheckSlurmSettings(const SchedulerSettings& settings,
                                               const ClusterPicture& picture, const std::string& user);

}  // namespace overcap
