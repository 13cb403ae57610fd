// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "clusters/slurm/lab_accounts.h"
#include "clusters/slurm/policy/plan_notes.h"
#include "clusters/slurm/policy/plan_partitions.h"
#include "clusters/slurm/policy/policy_classes.h"

namespace overcap {
namespace {

void AddLimit(TresLimits* limits, const char* name, const std::optional<int>& value) {
  if (value) (*limits)[name] = *value;
}

TresLimits CapLimits(const PolicyLab& lab) {
  TresLimits cap = {{"gres/gpu", lab.gpu_cap}};
  for (const TypedGpus& kind : lab.type_caps) cap[StrCat("gres/gpu:", kind.type)] = kind.count;
  AddLimit(&cap, "cpu", lab.cpu_cap);
  return cap;
}

// The classes in an order in which each stands behind those that it preempts.
std::vector<const PreemptionClass*> VictimsFirst(const std::vector<PreemptionClass>& classes) {
  std::vector<const PreemptionClass*> placed;
  while (placed.size() < classes.size()) {
    const size_t before = placed.size();
    for (const PreemptionClass& one : classes) {
      if (std::ranges::find(placed, &one) != placed.end()) continue;
      const bool ready = std::ranges::all_of(classes, [&](const PreemptionClass& other) {
        return !Preempts(one, other) || std::ranges::find(placed, &other) != placed.end();
      });
      if (ready) placed.push_back(&one);
    }
    if (placed.size() == before) break;  // a cycle, which a checked policy has not
  }
  return placed;
}

class Planner {
 public:
  explicit Planner(const Policy& policy) : policy_(policy), classes_(PreemptionClasses(policy)) {}

  Result<SlurmPolicyPlan> Run() {
    for (const PreemptionClass* one : VictimsFirst(classes_)) ClassQos(*one);
    LimitQos();
    for (const PolicyLab& lab : policy_.labs) Accounts(lab);
    OC_TRY_VOID(CheckNames());
    Users();
    plan_.partitions = PlanPartitions(policy_, classes_);
    plan_.settings = PlanSettings(policy_);
    plan_.maintenance = policy_.maintenance;
    plan_.nodes = policy_.nodes;
    plan_.notes = PlanNotes(policy_, classes_);
    return std::move(plan_);
  }

 private:
  Result<void> CheckNames() const;
  void ClassQos(const PreemptionClass& of);
  PlannedQos MakeQos(const PreemptionClass& of, const PolicyLab* lab) const;
  std::vector<std::string> PreemptList(const PreemptionClass& by, const PolicyLab* lab) const;
  void LimitQos();
  void Accounts(const PolicyLab& lab);
  PlannedAccount AccountCalled(const std::string& name, const PolicyLab& lab) const;
  void Users();

  const Policy& policy_;
  std::vector<PreemptionClass> classes_;
  SlurmPolicyPlan plan_;
};

Result<void> Planner::CheckNames() const {
  std::set<std::string> names = {"normal"};
  for (const PlannedQos& qos : plan_.qos) {
    if (!names.insert(qos.name).second)
      return Fail(ErrorCode::kUsage, StrCat("two QOS in Slurm would be called '", qos.name, "'"),
                  "give the lab or the partition another name");
  }
  std::set<std::string> accounts = {"root"};
  for (const PlannedAccount& account : plan_.accounts) {
    if (!accounts.insert(account.name).second)
      return Fail(ErrorCode::kUsage, StrCat("two accounts in Slurm would be called '", account.name, "'"),
                  "give the lab another name");
  }
  return {};
}

std::vector<std::string> Planner::PreemptList(const PreemptionClass& by, const PolicyLab* lab) const {
  std::vector<std::string> names;
  for (const PreemptionClass& victim : classes_) {
    if (!Preempts(by, victim)) continue;
    if (!OnlyLabmates(victim)) {
      for (std::string& name : QosNames(victim, policy_)) names.push_back(std::move(name));
    } else if (lab != nullptr && LabMayUse(victim, lab->name)) {
      names.push_back(QosOf(victim, lab->name));
    }
  }
  std::ranges::sort(names);
  return names;
}

PlannedQos Planner::MakeQos(const PreemptionClass& of, const PolicyLab* lab) const {
  const PolicyPartition& first = of.first();
  PlannedQos qos;
  qos.name = lab == nullptr ? of.name : QosOf(of, lab->name);
  qos.priority = first.priority;
  qos.preempt = PreemptList(of, lab);
  qos.requeue = !first.preempted_by.empty();
  qos.grace_s = first.grace_s;
  qos.exempt_s = first.quantum_s;
  qos.usage_factor = first.charge;
  if (lab != nullptr && first.counts == CapRule::kCounts) {
    qos.cap = CapLimits(*lab);
    AddLimit(&qos.per_user, "gres/gpu", lab->per_user.gpus);
    AddLimit(&qos.per_user, "cpu", lab->per_user.cpus);
    if (lab->per_user.jobs) qos.jobs_per_user = *lab->per_user.jobs;
  }
  return qos;
}

void Planner::ClassQos(const PreemptionClass& of) {
  if (!of.by_lab) plan_.qos.push_back(MakeQos(of, nullptr));
  for (const PolicyLab& lab : policy_.labs) {
    if (of.by_lab && LabMayUse(of, lab.name)) plan_.qos.push_back(MakeQos(of, &lab));
  }
}

// The limits of a partition are those of a QOS of its own.
void Planner::LimitQos() {
  for (const PolicyPartition& partition : policy_.partitions) {
    PlannedQos qos;
    qos.name = PartitionQos(partition);
    AddLimit(&qos.per_user, "gres/gpu", partition.per_user.gpus);
    AddLimit(&qos.per_user, "cpu", partition.per_user.cpus);
    AddLimit(&qos.per_job, "gres/gpu", partition.gpus_per_job);
    if (partition.per_user.jobs) qos.jobs_per_user = *partition.per_user.jobs;
    qos.max_wall_s = partition.max_time_s;
    plan_.qos.push_back(std::move(qos));
  }
}

// One of the lab's accounts, with what runs there. Without a QOS: nothing does.
PlannedAccount Planner::AccountCalled(const std::string& name, const PolicyLab& lab) const {
  PlannedAccount account;
  account.name = name;
  account.users = lab.members;
  account.coordinators = lab.admins;
  for (const PreemptionClass& one : classes_) {
    if (!LabMayUse(one, lab.name) || AccountIn(policy_, lab.name, one.first()) != name) continue;
    if (one.first().counts != CapRule::kFree) account.cap = CapLimits(lab);
    account.qos.push_back(QosOf(one, lab.name));
    const bool has_default = std::ranges::any_of(one.partitions, &PolicyPartition::is_default);
    if (has_default || account.default_qos.empty()) account.default_qos = account.qos.back();
  }
  std::ranges::sort(account.qos);
  return account;
}

// A limit of an account holds for all that is below it. So that of two the parent has none: it is there for
// the lab's shares.
void Planner::Accounts(const PolicyLab& lab) {
  const int shares = static_cast<int>(std::clamp(std::lround(lab.shares), 1L, 1'000'000L));
  PlannedAccount first = AccountCalled(lab.name, lab), second = AccountCalled(OvercapAccount(lab.name), lab);
  if (second.qos.empty()) {
    first.parent = "root", first.shares = shares;
    plan_.accounts.push_back(std::move(first));
    return;
  }
  PlannedAccount above{.name = ParentAccount(lab.name), .parent = "root", .shares = shares};
  first.parent = second.parent = above.name;
  for (PlannedAccount* one : {&above, &first, &second}) plan_.accounts.push_back(std::move(*one));
}

void Planner::Users() {
  for (const PolicyLab& lab : policy_.labs) {
    for (const std::string& user : lab.members) {
      if (!plan_.default_accounts.contains(user))
        plan_.default_accounts[user] = LabsOf(policy_, user).front();
    }
  }
  plan_.admins = policy_.admins;
}

}  // namespace

Result<SlurmPolicyPlan> PlanSlurmPolicy(const Policy& policy) {
  return Planner(policy).Run();
}

std::string TresText(const TresLimits& limits) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : limits) parts.push_back(StrCat(name, "=", count));
  return Join(parts, ",");
}

}  // namespace overcap
