// SPDX-License-Identifier: Apache-2.0
// A policy brought to a cluster: what differs, and making it so. Running it again does the rest of what a
// killed run left.
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
  std::string text;    // of the file
  std::string folder;  // where the scheduler's file of settings is written; "": settings are only told
  std::function<void(const PolicyStep& step)> before_step = [](const PolicyStep&) {};
};

struct PolicyApplied {
  PolicyDifference found;           // before anything was done
  size_t made = 0;                  // of found.steps
  std::vector<Error> failed;        // of optional steps
  std::string file;                 // that was written; "": none, or it was so already
  std::vector<PolicySetting> left;  // settings that are still not as they should be
  bool nothing() const { return found.steps.empty() && found.settings.empty(); }
};

// kUsage when the cluster takes no policy. An error of a step that others need ends it; what was made stays.
Result<PolicyApplied> ApplyPolicy(Cluster& cluster, const Policy& policy, const PolicyApplyOptions& options);

}  // namespace overcap
