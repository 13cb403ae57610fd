// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/plan_notes.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "clusters/slurm/policy/plan_partitions.h"

namespace overcap {
namespace {

class Notes {
 public:
  Notes(const Policy& policy, const std::vector<PreemptionClass>& classes)
      : policy_(policy), classes_(classes) {}

  std::vector<std::string> Run() {
    for (const PreemptionClass& one : classes_) HowToSubmit(one);
    Preemption();
    for (const PolicyPartition& partition : policy_.partitions) Partition(partition);
    for (const PolicyLab& lab : policy_.labs) Lab(lab);
    Weights();
    return std::move(notes_);
  }

 private:
  void Say(std::string text) { notes_.push_back(std::move(text)); }
  void HowToSubmit(const PreemptionClass& of);
  void Yields(const PreemptionClass& of, const std::string& lab);
  void Preemption();
  void Partition(const PolicyPartition& partition);
  void Lab(const PolicyLab& lab);
  void Weights();

  const Policy& policy_;
  const std::vector<PreemptionClass>& classes_;
  std::vector<std::string> notes_;
};

std::string NamesOf(const PreemptionClass& of) {
  std::vector<std::string> names;
  for (const PolicyPartition* partition : of.partitions) names.push_back(StrCat("'", partition->name, "'"));
  return Join(names, ", ");
}

// What sbatch is told besides the partition; `overcap submit` finds it by itself.
void Notes::HowToSubmit(const PreemptionClass& of) {
  const std::string& lab = policy_.labs.front().name;
  const std::string account = AccountIn(policy_, lab, of.first());
  if (account != lab) {
    Say(StrCat("a job in ", NamesOf(of), " has the lab's account for what does not count (sbatch --account=",
               account, " --qos=", QosOf(of, lab),
               "): Slurm counts every job of an account against its cap, whatever its partition"));
    Say(StrCat("one job cannot name ", NamesOf(of),
               " together with a partition that counts: a job has one account and one QOS"));
  } else if (!of.name.empty()) {
    Say(StrCat("a job in ", NamesOf(of), " has a QOS of its own (sbatch --qos=", QosOf(of, lab),
               "): Slurm preempts by the QOS of a job, not by its partition"));
  }
  if (of.first().counts == CapRule::kYields) Yields(of, lab);
}

void Notes::Yields(const PreemptionClass& of, const std::string& lab) {
  Say(StrCat("a job that names several partitions with --qos=", QosOf(of, lab),
             " yields in all of them, and limits per user of the lab do not hold it: a job has one QOS "
             "wherever it starts"));
  Say(StrCat("what runs in ", NamesOf(of),
             " gets what is left of the lab's cap. Slurm stops no job because a cap is full: a labmate's job "
             "that is within the cap starts beside it, and stops it only where nodes are full. So a lab has "
             "more than its cap for as long as such jobs run on GPUs that nobody within a cap needs"));
  Say(StrCat("what runs in ", NamesOf(of),
             " gives way to jobs of every lab that are within their cap, not of labmates alone: else a lab "
             "that has more than its cap could keep others from theirs"));
}

void Notes::Preemption() {
  const bool grace =
      std::ranges::any_of(policy_.partitions, [](const PolicyPartition& one) { return one.grace_s > 0; });
  if (grace) {
    Say("slurmctld looks for the end of a grace time every 30 s: a preempted job may have so much more; its "
        "warning "
        "(--signal=USR1@60) and its TERM come as Slurm's preempt_send_user_signal sends them");
  }
  Say("Slurm chooses those that are preempted by the priority of their QOS and then by their number of "
      "nodes: not "
      "by the work since their last checkpoint");
  Say("CPUs are not kept for GPUs that are free; a job gets DefCpuPerGPU when it asks for none");
}

void Notes::Partition(const PolicyPartition& partition) {
  if (!partition.users.empty()) {
    Say(StrCat("partition '", partition.name,
               "': Slurm cannot let single users in: all members of its labs may use it; a Unix group "
               "(AllowGroups) can"));
  }
  if (partition.cpus_per_gpu > 0) return;
  std::set<int> numbers;
  for (const PolicyNodes& nodes : policy_.nodes) {
    if (nodes.cpus_per_gpu > 0) numbers.insert(nodes.cpus_per_gpu);
  }
  if (numbers.size() > 1 && partition.is_default) {
    Say(StrCat("nodes have between ", *numbers.begin(), " and ", *numbers.rbegin(),
               " CPUs for a GPU; a partition of Slurm has one DefCpuPerGPU: the smallest"));
  }
}

void Notes::Lab(const PolicyLab& lab) {
  for (const auto& [user, limits] : lab.user_limits) {
    if (limits != lab.per_user) {
      Say(StrCat("lab '", lab.name, "': '", user,
                 "' gets the limits of every member: a QOS of Slurm has one limit per user"));
    }
  }
}

void Notes::Weights() {
  const PolicyWeights& weights = policy_.weights;
  if (weights.lab_half_life_s != weights.user_half_life_s) {
    Say(StrCat("Slurm has one half-life for labs and users: ", FormatDuration(weights.lab_half_life_s),
               ", that of the labs"));
  }
  Say("Slurm weighs labs and users in one fair-share tree, labs first; the weight is the sum of lab_share "
      "and user_share");
  Say("among the members of a lab, Slurm weighs what counts and what does not apart: a member's use of one "
      "does not put him behind in the other");
}

}  // namespace

std::vector<std::string> PlanNotes(const Policy& policy, const std::vector<PreemptionClass>& classes) {
  return policy.labs.empty() ? std::vector<std::string>{} : Notes(policy, classes).Run();
}

}  // namespace overcap
