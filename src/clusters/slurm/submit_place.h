// SPDX-License-Identifier: Apache-2.0
// The account and the QOS of a job that names a lab and partitions: where `overcap policy apply` has set up a
// cluster, what does not count has another account, and what yields another QOS. Pure.
#pragma once

#include <string>
#include <vector>

#include "clusters/slurm/partition_text.h"

namespace overcap {

struct SubmitPlace {
  std::vector<std::string> partitions = {};
  std::string account = {}, qos = {};  // "": left to Slurm
  bool operator==(const SubmitPlace&) const = default;
};

// Whether one of the partitions takes only some accounts or QOS.
bool PlaceMatters(const SubmitPlace& named, const std::vector<SlurmPartition>& partitions);

// What to ask for in the place of `named`: changed only where Slurm would refuse it as it is, and where the
// partitions let in exactly one thing of the lab's. `default_account`: of the user; "": not known.
SubmitPlace ChoosePlace(const SubmitPlace& named, const std::vector<SlurmPartition>& partitions,
                        const std::string& default_account);

}  // namespace overcap
