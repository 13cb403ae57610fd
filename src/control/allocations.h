// SPDX-License-Identifier: Apache-2.0
// <root>/allocations: the names of what people hold (docs/formats/allocations.md). What an allocation is now
// is told by its job; here stands which job a name means, and what is needed to reach it from elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/ssh_config.h"

namespace overcap {

struct HeldAllocation {
  std::string name;
  std::string job;  // its id
  std::string cluster;
  std::string home, binary;            // $OVERCAP_HOME and the program of who made it
  std::string config;                  // the configuration file that knows the cluster; "": the usual ones
  std::vector<std::string> variables;  // ClusterSessions::Contact() there
  std::string user;
  std::string jump;  // ssh goes to the node itself, through this host; "": into the job's own sshd
  int64_t made_us = 0;
  bool operator==(const HeldAllocation&) const = default;
};

std::string AllocationToJson(const HeldAllocation& allocation);
Result<HeldAllocation> AllocationFromJson(std::string_view json);

// 1 to 40 letters, digits, '_', '-' and '.', beginning with a letter or digit; no word that means jobs.
Result<void> CheckAllocationName(std::string_view name);

// The root of the cluster's jobs, from the file of an allocation; its ssh keys stand there too.
std::string RootOfAllocationFile(const std::string& file);

// What ssh shall be told while it is held on `node`. `file`: PathOf() its name.
SshHost SshHostOf(const HeldAllocation& allocation, const std::string& file, const std::string& node,
                  int attempt);

class AllocationBook {
 public:
  explicit AllocationBook(const std::string& root) : folder_(root + "/allocations") {}

  std::string PathOf(std::string_view name) const;
  // kConflict when the name is taken; exactly one of several callers wins.
  Result<void> Add(const HeldAllocation& allocation);
  std::optional<HeldAllocation> Find(std::string_view name) const;
  std::vector<HeldAllocation> All() const;  // by name; files that cannot be read are left out
  // The name is free again, if it still means this job.
  void Forget(const HeldAllocation& allocation);

 private:
  std::string folder_;
};

}  // namespace overcap
