// SPDX-License-Identifier: Apache-2.0
// What a cluster's own scheduler has to be told so that it follows a policy (docs/formats/policy.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/policy/policy.h"

namespace overcap {

// All of it as text, for people who do it by hand. Made without asking any cluster.
struct PolicyRendering {
  struct File {
    std::string name;  // "slurm.conf"
    std::string text;
  };
  std::vector<File> files;
  std::vector<std::vector<std::string>> commands;  // in this order
  std::vector<std::string>
      notes;  // what the scheduler cannot do of the policy, or does otherwise; one line each
};

// One change, made by one call of one of the scheduler's programs. Making it twice does no harm.
struct PolicyStep {
  std::string text;               // "add account 'vision' with a cap of 16 GPUs"
  std::vector<std::string> argv;  // of the program
  bool optional = false;          // those after it do not need it: when it fails they are done all the same
};

// Something in the scheduler's own file that is not as the policy wants it. An administrator changes it.
struct PolicySetting {
  std::string why;       // "PreemptType is preempt/none"
  std::string line;      // that the file must have; "": only an administrator knows it
  bool restart = false;  // counts only when the controller starts
};

struct PolicyDifference {
  std::vector<PolicyStep> steps;
  std::vector<PolicySetting> settings;
  std::vector<std::string> notes;  // what is left as it is: accounts that the policy does not name
  std::string file;                // whose lines `settings` are: "slurm.conf"
  std::string then;                // what to do once the file has them
  std::optional<Error> blocked;    // why no step may be made before an administrator has acted
};

// The part of a cluster that takes a policy.
class ClusterPolicy {
 public:
  virtual ~ClusterPolicy() = default;

  // For clusters whose engine reads the file itself: its text, which the next calls are about.
  virtual void TakeText(const std::string& text) { (void)text; }
  // The policy that the cluster's own engine follows now; nothing: there is none, or it does not read
  // policies.
  virtual Result<std::optional<Policy>> InForce() { return std::optional<Policy>(); }

  // What is different now. Asks the cluster itself, not what is remembered of it; changes nothing. kUsage
  // when the policy is for another cluster.
  virtual Result<PolicyDifference> Compare(const Policy& policy) = 0;
  // Makes one change. kDenied when only an administrator may.
  virtual Result<void> Make(const PolicyStep& step) = 0;
  // Returns when the controller knows all that `settings` of the difference name, so that it can read them.
  virtual Result<void> WaitUntilKnown(const Policy& policy) {
    (void)policy;
    return {};
  }
};

}  // namespace overcap
