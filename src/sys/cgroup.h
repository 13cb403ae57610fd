// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/cgroup_places.h"

namespace overcap {

struct CgroupRequest {
  std::string name;                           // one path component, "overcap-<id>-<attempt>-<slot>"
  int64_t memory_bytes = 0;                   // limit of memory, swap included; 0: none
  std::string cpus;                           // "0-3,8": the processors it may use; empty: all
  std::optional<std::vector<int>> gpus = {};  // N of the /dev/nvidiaN that it may open; nothing: all
};

// One job's control group: one folder under v2, or one in each hierarchy that is needed under v1. It outlives
// this object and the process; whoever made it calls KillAll() and Remove().
class Cgroup {
 public:
  // Makes it beside or below the caller's own group. kUnavailable, with the reason, when this machine gives
  // us none that can hold the memory limit (then nothing is left behind); a missing cpuset, or GPUs that
  // cannot be kept from it, are no failure, see LimitsCpus() and LimitsGpus().
  static Result<Cgroup> Create(const CgroupRequest& request);
  // One that a dead process left behind; kNotFound when there is none.
  static Result<Cgroup> Find(const std::string& name);

  // A process that writes "0" into each of these has joined.
  std::vector<std::string> ProcsFiles() const;
  Result<void> AddProcess(pid_t pid);
  // Moves it to where the caller is itself, in all hierarchies of this group.
  Result<void> Release(pid_t pid);
  std::vector<pid_t> Processes() const;

  // SIGKILL to all in it, until none is left; kUnavailable when some are after `timeout` (stuck in the
  // kernel). Never called from inside the group.
  Result<void> KillAll(std::chrono::milliseconds timeout);
  // How many processes in it the kernel has killed because the memory limit was reached, since it was made.
  int64_t OomKills() const;
  // After KillAll. Tries again until `timeout` while the kernel still holds it; fine when it is gone.
  Result<void> Remove(std::chrono::milliseconds timeout);

  bool LimitsMemory() const { return limits_memory_; }
  bool LimitsCpus() const { return limits_cpus_; }
  bool LimitsGpus() const { return limits_gpus_; }
  int Version() const { return v2_ ? 2 : 1; }

 private:
  // The group's folder in one hierarchy.
  struct Part {
    std::string controller;  // empty: v2, which has them all
    std::string folder;
  };

  static Result<Cgroup> CreateV2(const CgroupPlace& place, const CgroupRequest& request, bool with_cpus);
  static Result<Cgroup> CreateV1(const CgroupPlaces& places, const CgroupRequest& request);
  Result<void> AddPart(const std::string& controller, const std::string& parent, const std::string& name);
  Result<void> LimitMemory(int64_t bytes);
  void LimitCpus(const std::string& cpus);

  const Part* PartOf(std::string_view controller) const;  // null when it has none
  bool Empty() const;
  void Freeze(bool frozen) const;
  void Signal() const;

  bool v2_ = false;
  bool limits_memory_ = false;
  bool limits_cpus_ = false;
  bool limits_gpus_ = false;
  std::vector<Part> parts_;  // all hold the same processes
};

}  // namespace overcap
