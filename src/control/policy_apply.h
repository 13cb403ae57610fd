// SPDX-License-Identifier: Apache-2.0
// A policy brought to a cluster: what differs, and making it so. Running it again does the rest of what a
// killed run left. The scheduler's own files are never written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/cluster_policy.h"

namespace overcap {

// The text for a driver's scheduler. kNotFound names the nearest driver, kUsage when it has nothing to be
// told.
Result<PolicyRendering> RenderPolicy(const std::string& driver, const Policy& policy);

struct PolicyApplyOptions {
  bool dry_run = false;
  std::string text;  // of the file
  std::function<void(const PolicyStep& step)> before_step = [](const PolicyStep&) {};
};

struct PolicyApplied {
  PolicyDifference found;     // before anything was done
  size_t made = 0;            // of found.steps
  std::vector<Error> failed;  // of optional steps
  bool nothing() const { return found.steps.empty() && found.settings.empty() && !found.blocked; }
};

// kUsage when the cluster takes no policy. An error of a step that others need ends it; what was made stays.
Result<PolicyApplied> ApplyPolicy(Cluster& cluster, const Policy& policy, const PolicyApplyOptions& options);

}  // namespace overcap
