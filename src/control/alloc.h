// SPDX-License-Identifier: Apache-2.0
// Holding resources for a person: a job whose command only waits, known by a name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/cluster_sessions.h"
#include "control/allocations.h"
#include "control/submit.h"
#include "sys/clock.h"

namespace overcap {

// What an allocation is now.
struct AllocationState {
  HeldAllocation allocation;
  std::string file;
  std::optional<JobRecord> record;  // none: `trouble` says why
  std::string trouble;
  std::vector<std::string> nodes;  // while it runs
  bool ssh = false;                // ssh knows the way to it
};

// Where allocations are looked for and how their clusters are reached.
struct AllocWorld {
  std::vector<std::string> roots;  // of the clusters' jobs; the first is the one that is used now
  std::string home;                // the user's home folder, where ssh's configuration stands
  std::function<Result<Cluster*>(const std::string& name)> cluster;
  const Clock& clock;
};

// All that live. On the way it mends: names of jobs that have ended are free again, entries of ssh that lead
// nowhere are removed. A cluster that does not answer ends nothing.
std::vector<AllocationState> LookAtAllocations(const AllocWorld& world);
// The one of that name, in the order of the roots, mended too; nullopt when there is none.
std::optional<AllocationState> FindAllocation(const AllocWorld& world, std::string_view name);

struct AllocRequest {
  std::string name;
  JobRequest job;      // its command is set here; its folder is where shells start
  std::string binary;  // this program
  std::string home;    // $OVERCAP_HOME
  std::string config;  // as HeldAllocation::config
  std::string jump;    // as HeldAllocation::jump
};
struct MadeAllocation {
  AllocationState state;
  std::vector<std::string> notes;
};
// Submits it; returns before it runs. kConflict when the name is held by a living one.
Result<MadeAllocation> MakeAllocation(AllocRequest request, const AllocWorld& world,
                                      const SubmitTools& tools);

// Ends it: its job is cancelled, and when that has ended within `patience_seconds` the name is free. True: it
// has.
Result<bool> EndAllocation(const AllocWorld& world, const AllocationState& state, int64_t patience_seconds);

// What ssh's ProxyCommand becomes: an sshd inside the job, on stdin and stdout. `keys`: SshKeys::folder.
Result<Replacement> PlanConnection(Cluster& cluster, const JobRecord& record, const std::string& binary,
                                   const std::string& keys);

}  // namespace overcap
