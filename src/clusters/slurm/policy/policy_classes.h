// SPDX-License-Identifier: Apache-2.0
// Which partitions of a policy are one to Slurm's preemption, and what the QOS of each is called. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/policy/policy.h"

namespace overcap {

// Partitions whose jobs preempt the same ones and give way in the same way.
struct PreemptionClass {
  std::vector<const PolicyPartition*> partitions;  // highest priority first; alike but for their limits
  std::string name;    // of its QOS, without the lab: "overcap"; "": that of the default
  bool by_lab = true;  // a QOS for each lab, else one for all
  const PolicyPartition& first() const { return *partitions.front(); }
};

std::vector<PreemptionClass> PreemptionClasses(const Policy& policy);

// "vision", "vision-user-overcap", "overcap".
std::string QosOf(const PreemptionClass& of, std::string_view lab);
// The names of its QOS for all labs that may use one of its partitions.
std::vector<std::string> QosNames(const PreemptionClass& of, const Policy& policy);
bool LabMayUse(const PreemptionClass& of, std::string_view lab);

// The account in which the lab's jobs of a partition run: called as the lab, or its overcap account
// (lab_accounts.h) where what runs does not count and other partitions of the lab do.
std::string AccountIn(const Policy& policy, std::string_view lab, const PolicyPartition& partition);

// Whether only jobs of the same lab stop those of the class. Those of one that yields every lab may stop:
// beside them a lab may have more than its cap (policy_plan.h).
bool OnlyLabmates(const PreemptionClass& victim);

// Whether jobs of `by` may stop jobs of `victim`, as far as the partitions go.
bool Preempts(const PreemptionClass& by, const PreemptionClass& victim);

}  // namespace overcap
