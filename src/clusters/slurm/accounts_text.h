// SPDX-License-Identifier: Apache-2.0
// Accounts, their members and caps, and the classes of service, as `sacctmgr` tells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/tool_call.h"
#include "clusters/slurm/tres_text.h"

namespace overcap {

// A cap on what many jobs have together. What is not capped is empty.
struct SlurmCap {
  std::optional<int> gpus, cpus;
  std::vector<GpuCount> gpu_types;
  bool operator==(const SlurmCap&) const = default;
};

// An account in a cluster (`user` empty) or a user's membership in one.
struct SlurmAssociation {
  std::string cluster = {}, account = {}, parent = {}, user = {}, partition = {};
  SlurmCap cap = {};
  std::optional<int> max_jobs = {};
};

struct SlurmQos {
  std::string name = {};
  std::vector<std::string> preempts = {};
  SlurmCap cap = {}, per_user = {}, per_account = {};
  std::optional<int> max_jobs = {}, jobs_per_user = {};
  int64_t max_time_s = 0;  // 0: none
  int64_t grace_s = 0,
          exempt_s = 0;  // of its jobs when they are preempted: the notice, and the time that each has first
};

struct SlurmUser {
  std::string name, default_account;
};

std::vector<std::string> AssociationsCommand();
std::vector<std::string> QosCommand();
std::vector<std::string> UsersCommand();

// kCorrupt when the text is cut off or is not what the command prints.
Result<std::vector<SlurmAssociation>> ParseAssociations(std::string_view text);
Result<std::vector<SlurmQos>> ParseQos(std::string_view text);
Result<std::vector<SlurmUser>> ParseUsers(std::string_view text);

// "cpu=64,gres/gpu:a40=6,gres/gpu=8".
SlurmCap ParseSlurmCap(std::string_view tres);

// Whether sacctmgr failed because this cluster keeps no accounts at all: an answer too, and an empty one.
bool SaysThereAreNoAccounts(const std::vector<std::string>& argv, const ToolAnswer& answer);

}  // namespace overcap
