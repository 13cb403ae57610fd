// SPDX-License-Identifier: Apache-2.0
// How labs share a pooled cluster (docs/formats/policy.md), as plain data with every default filled in.
// Whoever makes one without policy_text.h asks PolicyProblems() whether it holds together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/typed_gpus.h"

namespace overcap {

// Of partitions that can be preempted and do not say it.
constexpr int64_t kDefaultGraceSeconds = 120, kDefaultQuantumSeconds = 300;

// Hosts that are alike.
struct PolicyNodes {
  std::string hosts = {};               // as the file says it: "a[01-08]"
  std::vector<std::string> names = {};  // the same, one by one
  std::vector<TypedGpus> gpus = {};     // of each; types are normal (NormalPolicyGpuType)
  int cpus = 0;                         // of each
  int cpus_per_gpu = 0;                 // that belong to a GPU; 0: there are no GPUs
  int64_t mem_bytes = 0;                // of each; 0: memory is not shared out
  std::vector<std::string> features = {};
  int line = 0;  // of the file; 0: from no file
};

// What one user may have at the same time; none: no limit.
struct PolicyUserLimits {
  std::optional<int> gpus = {}, cpus = {}, jobs = {};
  bool operator==(const PolicyUserLimits&) const = default;
};

struct PolicyLab {
  std::string name = {};
  int gpu_cap = 0;
  std::vector<TypedGpus> type_caps = {};  // types that have a cap of their own
  std::optional<int> cpu_cap = {};        // none: no cap
  std::vector<std::string> members = {};  // sorted; admins are members too
  std::vector<std::string> admins = {};   // sorted
  double shares = 1;                      // above 0
  PolicyUserLimits per_user = {};         // of each member, in partitions that count in full
  std::map<std::string, PolicyUserLimits> user_limits = {};  // of single members, in the place of per_user
  int line = 0;
};

// Whether what runs in a partition counts against the lab's cap.
enum class CapRule {
  kCounts,  // yes
  kYields,  // yes, but labmates come first: user-overcap
  kFree,    // no: others' idle GPUs: overcap
};
std::string_view CapRuleName(CapRule rule);  // "yes", "yields", "no"

struct PolicyPartition {
  std::string name = {};
  int priority = 25;               // higher goes first
  int64_t max_time_s = 0;          // 0: any
  int64_t default_time_s = 0;      // 0: any; never above max_time_s
  PolicyUserLimits per_user = {};  // at once, over all labs
  std::optional<int> gpus_per_job = {}, nodes_per_job = {};
  int cpus_per_gpu = 0;  // of jobs that ask for none; 0: that of the node
  int64_t mem_per_gpu = 0;
  CapRule counts = CapRule::kCounts;
  std::vector<std::string> preempted_by = {};  // partitions; empty: nobody may
  bool labmates_only = false;
  int64_t grace_s = 0, quantum_s = 0;
  double charge = 1;                    // of a GPU second in the fair share
  std::vector<std::string> labs = {};   // that may use it; empty: all
  std::vector<std::string> users = {};  // the same
  std::vector<std::string> nodes = {};  // host names; empty: all
  bool is_default = false;
  int line = 0;  // 0: one of the five that are there without being named
};

// Nodes that take no job whose time limit reaches into it.
struct PolicyMaintenance {
  std::string name = {};
  std::vector<std::string> nodes = {};  // host names; empty: all
  int64_t start_us = 0, end_us = 0;     // since 1970
  int line = 0;
};

// score = lab_share * L + user_share * U + age * A + size * G, see the format.
struct PolicyWeights {
  int lab_share = 1000, user_share = 500, age = 300, size = 50;
  int64_t age_full_s = 7 * 86400;
  int64_t lab_half_life_s = 7 * 86400, user_half_life_s = 7 * 86400;  // 0: use never fades
  bool operator==(const PolicyWeights&) const = default;
};

struct Policy {
  std::string cluster;  // the scheduler's name for it; "": not told
  std::vector<PolicyNodes> nodes;
  std::vector<PolicyLab> labs;                      // in the order of the file
  std::vector<PolicyPartition> partitions;          // highest priority first, of equal ones by name
  std::map<std::string, std::string> default_labs;  // by user, where it is not the first that has them
  std::vector<std::string> admins;                  // beside root
  std::vector<PolicyMaintenance> maintenance;       // by start
  PolicyWeights weights;
  bool oversubscribe = false;
};

// debug, short, long, user-overcap and overcap as they are without a word in the file.
std::vector<PolicyPartition> BuiltInPartitions();

// ---- questions; nullptr and "" where there is no such thing

const PolicyLab* FindPolicyLab(const Policy& policy, std::string_view name);
const PolicyPartition* FindPolicyPartition(const Policy& policy, std::string_view name);
const PolicyPartition* DefaultPartition(const Policy& policy);

bool IsMember(const PolicyLab& lab, std::string_view user);
std::vector<std::string> LabsOf(const Policy& policy, std::string_view user);  // the default one first
PolicyUserLimits LimitsOf(const PolicyLab& lab, std::string_view user);

// Whether a member of the lab may submit there with that lab.
bool MayUse(const PolicyPartition& partition, std::string_view lab, std::string_view user);
// Whether a waiting job of partition `by` may stop a running one of partition `victim`, as far as the
// partitions and labs are concerned.
bool MayPreempt(const PolicyPartition& by, std::string_view by_lab, const PolicyPartition& victim,
                std::string_view victim_lab);

std::vector<TypedGpus> GpusOf(const Policy& policy);  // of all nodes by type, sorted
int GpuTotal(const Policy& policy);
int64_t CpuTotal(const Policy& policy);
size_t NodeTotal(const Policy& policy);

// "RTX-6000" -> "rtx_6000": lower case, '-' and ' ' as '_'.
std::string NormalPolicyGpuType(std::string_view type);

}  // namespace overcap
