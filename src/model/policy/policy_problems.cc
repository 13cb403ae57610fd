// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy_problems.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "model/policy/preemption_cycle.h"

namespace overcap {
namespace {

constexpr size_t kMaxLabsOfUser = 32;
// What the scheduler can hold (sched/pooled/rules.h): one bit each of 64.
constexpr size_t kMaxPartitions = 64, kMaxGpuTypes = 63;
constexpr int kMaxGpusOfNode = 64;  // of one type

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

class Checker {
 public:
  explicit Checker(const Policy& policy) : policy_(policy), gpus_(GpusOf(policy)) {}

  std::vector<PolicyProblem> Run() {
    Nodes();
    Labs();
    CapsTogether();
    Users();
    Partitions();
    Preemption();
    Maintenance();
    return std::move(problems_);
  }

 private:
  void Nodes();
  void Bounds();
  void Labs();
  void Caps(const PolicyLab& lab);
  void CapsTogether();
  void Users();
  void Partitions();
  void OnePartition(const PolicyPartition& partition);
  void Usable(const PolicyPartition& partition);
  void Useless(const PolicyPartition& partition);
  void Preemption();
  void Maintenance();
  template <typename T>
  void Twice(const std::vector<T>& things, std::string_view kind);
  void KnownHosts(int line, const std::string& owner, const std::vector<std::string>& hosts);

  void Error(int line, std::string message, std::string hint = {}) {
    problems_.push_back({line, false, std::move(message), std::move(hint)});
  }
  void Warning(int line, std::string message) { problems_.push_back({line, true, std::move(message), {}}); }

  const Policy& policy_;
  std::vector<TypedGpus> gpus_;
  std::unordered_map<std::string, int> hosts_;  // the line of each
  std::vector<PolicyProblem> problems_;
};

template <typename T>
void Checker::Twice(const std::vector<T>& things, std::string_view kind) {
  std::unordered_map<std::string, std::string> seen;
  for (const T& thing : things) {
    const auto [place, first] = seen.emplace(LowerCase(thing.name), thing.name);
    if (first) continue;
    const std::string other =
        place->second == thing.name ? "" : StrCat(" (the other is called '", place->second, "')");
    Error(thing.line, StrCat("there are two ", kind, "s '", thing.name, "'", other));
  }
}

void Checker::Nodes() {
  if (policy_.nodes.empty()) Error(1, "there are no nodes");
  for (const PolicyNodes& nodes : policy_.nodes) {
    for (const std::string& name : nodes.names) {
      const auto [place, first] = hosts_.emplace(name, nodes.line);
      if (first) continue;
      Error(nodes.line, StrCat("host '", name, "' stands in 'nodes' a second time; the first is in line ",
                               place->second));
      break;  // one of a list is enough
    }
  }
  Bounds();
}

void Checker::Bounds() {
  std::unordered_set<std::string> types;
  for (const PolicyNodes& nodes : policy_.nodes) {
    for (const TypedGpus& kind : nodes.gpus) {
      if (types.insert(kind.type).second && types.size() == kMaxGpuTypes + 1)
        Error(nodes.line, StrCat("GPU type '", kind.type, "' of nodes '", nodes.hosts, "' is the ",
                                 types.size(), "th: a policy can have ", kMaxGpuTypes));
      if (kind.count > kMaxGpusOfNode)
        Error(nodes.line, StrCat("nodes '", nodes.hosts, "' have ", kind.count, " ", kind.type,
                                 " each: a node can have ", kMaxGpusOfNode, " of one type"));
    }
  }
  if (policy_.partitions.size() <= kMaxPartitions) return;
  std::vector<const PolicyPartition*> in_order;
  for (const PolicyPartition& partition : policy_.partitions) in_order.push_back(&partition);
  std::ranges::stable_sort(in_order, {}, &PolicyPartition::line);
  const PolicyPartition& first = *in_order[kMaxPartitions];
  Error(first.line,
        StrCat("partition '", first.name, "' is the ", kMaxPartitions + 1, "th: a policy can have ",
               kMaxPartitions, ", with those that are there by default"));
}

void Checker::Labs() {
  if (policy_.labs.empty()) Error(1, "there are no labs");
  Twice(policy_.labs, "lab");
  for (const PolicyLab& lab : policy_.labs) {
    if (lab.members.empty())
      Error(lab.line, StrCat("lab '", lab.name, "' has no members"), "name them: 'members: [ann, bob]'");
    Caps(lab);
  }
}

void Checker::Caps(const PolicyLab& lab) {
  const int total = GpuCountOf(gpus_);
  if (lab.gpu_cap > total) {
    Error(lab.line, StrCat("lab '", lab.name, "' has a cap of ", CountOf(lab.gpu_cap, "GPU"),
                           ", the cluster has ", total));
  }
  if (lab.cpu_cap && *lab.cpu_cap > CpuTotal(policy_)) {
    Error(lab.line, StrCat("lab '", lab.name, "' has a cap of ", CountOf(*lab.cpu_cap, "CPU"),
                           ", the cluster has ", CpuTotal(policy_)));
  }
  for (const TypedGpus& cap : lab.type_caps) {
    const int there = GpuCountOf(gpus_, cap.type);
    std::vector<std::string> types;
    for (const TypedGpus& kind : gpus_) types.push_back(kind.type);
    if (there == 0)
      Error(lab.line,
            StrCat("lab '", lab.name, "' has a cap for '", cap.type, "', and no node has such GPUs"),
            StrCat("there is: ", Join(types, ", ")));
    else if (cap.count > there)
      Error(lab.line, StrCat("lab '", lab.name, "' has a cap of ", cap.count, " ", cap.type,
                             ", the cluster has ", there));
    if (cap.count > lab.gpu_cap)
      Error(lab.line, StrCat("lab '", lab.name, "' has a cap of ", cap.count, " ", cap.type,
                             ", more than its cap of ", lab.gpu_cap, " in all"));
  }
}

void Checker::CapsTogether() {
  if (policy_.oversubscribe) return;
  constexpr const char* kHint = "lower them, or say 'oversubscribe: yes': then no lab is sure of its cap";
  int64_t sum = 0;
  std::map<std::string, int64_t> sums;
  for (const PolicyLab& lab : policy_.labs) {
    sum += lab.gpu_cap;
    for (const TypedGpus& cap : lab.type_caps) sums[cap.type] += cap.count;
  }
  const int line = policy_.labs.empty() ? 1 : policy_.labs.front().line;
  if (sum > GpuCountOf(gpus_)) {
    Error(line, StrCat("the labs have caps of ", sum, " GPUs together, the cluster has ", GpuCountOf(gpus_)),
          kHint);
  }
  for (const TypedGpus& kind : gpus_) {
    if (sums[kind.type] > kind.count)
      Error(line,
            StrCat("the labs have caps of ", sums[kind.type], " ", kind.type, " together, the cluster has ",
                   kind.count),
            kHint);
  }
}

void Checker::Users() {
  std::unordered_map<std::string, size_t> labs_of;
  for (const PolicyLab& lab : policy_.labs) {
    for (const std::string& user : lab.members) {
      if (++labs_of[user] == kMaxLabsOfUser + 1)
        Error(lab.line, StrCat("user '", user, "' is in more than ", kMaxLabsOfUser, " labs"));
    }
  }
}

void Checker::Partitions() {
  if (policy_.partitions.empty()) Error(1, "there is no partition");
  Twice(policy_.partitions, "partition");
  const PolicyPartition* chosen = nullptr;
  for (const PolicyPartition& partition : policy_.partitions) {
    OnePartition(partition);
    if (!partition.is_default) continue;
    if (chosen != nullptr) {
      Error(std::max(partition.line, chosen->line),
            StrCat("partitions '", chosen->name, "' and '", partition.name, "' are both the default"));
    }
    chosen = &partition;
  }
}

void Checker::KnownHosts(int line, const std::string& owner, const std::vector<std::string>& hosts) {
  const auto unknown =
      std::ranges::find_if(hosts, [&](const std::string& host) { return !hosts_.contains(host); });
  if (unknown != hosts.end())
    Error(line, StrCat(owner, " names the host '", *unknown, "', which is not in 'nodes'"));
}

void Checker::OnePartition(const PolicyPartition& partition) {
  const std::string owner = StrCat("partition '", partition.name, "'");
  if (partition.max_time_s > 0 &&
      (partition.default_time_s == 0 || partition.default_time_s > partition.max_time_s))
    Error(partition.line, StrCat("'default_time' of ", owner, " is above its 'max_time'"));
  std::vector<std::string> labs, names;
  for (const PolicyLab& lab : policy_.labs) labs.push_back(lab.name);
  for (const PolicyPartition& other : policy_.partitions) names.push_back(other.name);
  for (const std::string& lab : partition.labs) {
    if (FindPolicyLab(policy_, lab) != nullptr) continue;
    const std::string nearest = Nearest(lab, labs);
    Error(partition.line, StrCat("'labs' of ", owner, ": there is no lab '", lab, "'"),
          nearest.empty() ? "" : StrCat("did you mean '", nearest, "'?"));
  }
  for (const std::string& by : partition.preempted_by) {
    if (FindPolicyPartition(policy_, by) != nullptr) continue;
    const std::string nearest = Nearest(by, names);
    Error(partition.line, StrCat("'preempted_by' of ", owner, ": there is no partition '", by, "'"),
          nearest.empty() ? "" : StrCat("did you mean '", nearest, "'?"));
  }
  KnownHosts(partition.line, StrCat("'nodes' of ", owner), partition.nodes);
  Usable(partition);
  Useless(partition);
}

void Checker::Usable(const PolicyPartition& partition) {
  const bool zero = partition.per_user.gpus == 0 && partition.per_user.cpus == 0;
  if (zero || partition.per_user.jobs == 0) {
    Error(partition.line, StrCat("nobody may use partition '", partition.name, "': its limits are 0"));
    return;
  }
  if (partition.users.empty() && partition.labs.empty()) return;
  for (const PolicyLab& lab : policy_.labs) {
    for (const std::string& user : lab.members) {
      if (MayUse(partition, lab.name, user)) return;
    }
  }
  Error(partition.line, StrCat("nobody may use partition '", partition.name, "'"),
        "its 'labs' and 'users' have no member of a lab in common");
}

void Checker::Useless(const PolicyPartition& partition) {
  if (!partition.preempted_by.empty()) return;
  if (partition.grace_s > 0 || partition.quantum_s > 0 || partition.labmates_only) {
    Warning(partition.line,
            StrCat("partition '", partition.name,
                   "' is preempted by nobody: its grace, quantum and labmates_only do nothing"));
  }
  if (partition.counts == CapRule::kFree) {
    Warning(partition.line, StrCat("partition '", partition.name,
                                   "' counts against no cap and is preempted by nobody: who borrows there "
                                   "never gives back"));
  }
}

void Checker::Preemption() {
  const std::vector<std::string> cycle = PreemptionCycle(policy_);
  if (cycle.empty()) return;
  int line = 0;
  for (const std::string& name : cycle) line = std::max(line, FindPolicyPartition(policy_, name)->line);
  if (cycle.size() == 2) return Error(line, StrCat("partition '", cycle[0], "' preempts itself"));
  Error(line, StrCat("cyclic preemption: ", Join(cycle, " is preempted by ")),
        "take one of them out of 'preempted_by'");
}

void Checker::Maintenance() {
  Twice(policy_.maintenance, "maintenance");
  for (const PolicyMaintenance& maintenance : policy_.maintenance) {
    const std::string owner = StrCat("maintenance '", maintenance.name, "'");
    if (maintenance.end_us <= maintenance.start_us)
      Error(maintenance.line, StrCat(owner, " ends before it starts"));
    KnownHosts(maintenance.line, owner, maintenance.nodes);
  }
}

}  // namespace

std::vector<PolicyProblem> PolicyProblems(const Policy& policy) {
  return Checker(policy).Run();
}

}  // namespace overcap
