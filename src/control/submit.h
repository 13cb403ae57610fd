// SPDX-License-Identifier: Apache-2.0
// From a request to a job: check everything, freeze the code, send it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "control/config.h"
#include "control/job_request.h"
#include "snapshot/capture.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

// What submitting needs beside the request.
struct SubmitTools {
  Cluster& cluster;
  const Config& config;
  const Clock& clock;
  Random& random;
  std::string store;                                                // the folder of the snapshot store
  std::function<void(int64_t files, int64_t bytes)> progress = {};  // of the capture; may be empty
  bool submit_follows = false;                                      // the cluster may begin what takes time
  JobStore via = {};                                                // the job's store; none: `store`
};

struct PreparedJob {
  SubmitPlan plan;
  std::optional<CaptureReport> capture;  // none when the ranks start outside the folder
  std::vector<std::string> notes;        // what the user should know, one line each
};

// What the cluster's admins would tell who submits this; nothing where nobody knows. Never an error.
std::vector<std::string> AdviceFor(Cluster& cluster, const JobSpec& spec);

// kConflict when one of these jobs, which must succeed first, has ended otherwise already.
Result<void> CheckAfter(Cluster& cluster, const std::vector<Dependency>& after);

// Checks the request (kUsage: nothing was left behind), then captures the folder and stores the environment.
// Sends nothing: cluster.Submit(plan) does.
Result<PreparedJob> PrepareJob(const JobRequest& request, const SubmitTools& tools);

// Captures a folder without any job; what `submit` then finds unchanged.
Result<CaptureReport> CaptureFolder(const std::string& folder, const std::string& store_folder,
                                    const Clock& clock, const CaptureOptions& options);

// A line that names the largest folders when the capture is over the configured size; "" when it is not.
std::string CaptureWarning(const CaptureReport& capture, const Config& config);

}  // namespace overcap
