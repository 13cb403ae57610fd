// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/courier/courier.h"
#include "agent/options.h"
#include "agent/report_file.h"
#include "model/job_state.h"

namespace overcap {

// The courier of a job whose spec in this folder names a store; none for any other, or when it cannot be
// started: then the job cannot run, and says so. Before there is a supervisor.
std::optional<Courier> CourierFor(const AgentOptions& options);

// The courier of a job that came through a store to a node which does not see the root. kDenied when the
// folder for jobs is not safe to use.
Result<void> MakeNodeFolder(const std::string& folder);
Result<Courier> StartOnNode(const AgentOptions& options);

// Where the repository of a job's store keeps what is of this machine; <root>/store is that of the root's
// own.
std::string LocalPartOf(const std::string& store_dir, const JobStore& store);

// Waits for the logs, before the end is reported; what could not be uploaded becomes part of it.
void DrainCourier(Courier* courier, int64_t seconds, int64_t now_us, ReportFile* report, Ending* ending);

constexpr int64_t kDrainSeconds = 60;  // when ranks have ended by themselves
constexpr int64_t kStopSeconds = 5;    // when somebody waits for the end

}  // namespace overcap
