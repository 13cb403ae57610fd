// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "clusters/slurm/policy/policy_classes.h"
#include "clusters/slurm/policy/render_policy.h"
#include "model/policy/policy_text.h"

namespace overcap {
namespace {

Policy Read(const std::string& text) {
  auto policy = ParsePolicy(text, "p.yaml");
  if (!policy) ADD_FAILURE() << policy.error().message;
  return policy ? std::move(*policy) : Policy{};
}

std::string Two(const std::string& more = "") {
  return "nodes: {\"n[1-2]\": a40:4}\nlabs: {vision: 4 ann, nlp: {gpus: {a40: 4}, cpus: 9, members: "
         "[bob]}}\n" +
         more;
}

SlurmPolicyPlan Plan(const std::string& text) {
  auto plan = PlanSlurmPolicy(Read(text));
  if (!plan) ADD_FAILURE() << plan.error().message;
  return plan ? std::move(*plan) : SlurmPolicyPlan{};
}

const PlannedQos& Qos(const SlurmPolicyPlan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.qos, name, &PlannedQos::name);
  EXPECT_NE(found, plan.qos.end()) << name;
  static const PlannedQos kNone;
  return found == plan.qos.end() ? kNone : *found;
}

std::string Accounts(const SlurmPolicyPlan& plan) {
  std::string all;
  for (const PlannedAccount& one : plan.accounts) {
    all += StrCat(one.name, " < ", one.parent, " ", one.shares, ": ", TresText(one.cap));
    if (!one.qos.empty())
      all += StrCat(" ", Join(one.qos, ","), " (", one.default_qos, ") ", Join(one.users, ","));
    all += "\n";
  }
  return all;
}

bool Says(const std::vector<std::string>& notes, std::string_view text) {
  return std::ranges::any_of(notes,
                             [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::string Field(const SlurmPolicyPlan& plan, std::string_view partition, std::string_view field) {
  for (const PlannedPartition& one : plan.partitions) {
    for (const auto& [name, value] : one.fields) {
      if (one.name == partition && name == field) return value;
    }
  }
  return "(none)";
}

TEST(SlurmPolicyPlan, PartitionsThatGiveWayAlikeShareAClass) {
  const Policy policy = Read(Two());
  const auto classes = PreemptionClasses(policy);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].partitions.size(), 3u);  // debug, short, long
  EXPECT_EQ(QosOf(classes[0], "vision"), "vision");
  EXPECT_EQ(QosOf(classes[1], "vision"), "vision-user-overcap");
  EXPECT_EQ(QosOf(classes[2], "vision"), "overcap");
}

TEST(SlurmPolicyPlan, TheCapIsOnTheQosAndTheAccountOfTheLabAndNowhereElse) {
  const SlurmPolicyPlan plan = Plan(Two());
  EXPECT_EQ(TresText(Qos(plan, "vision").cap), "gres/gpu=4");
  EXPECT_EQ(TresText(Qos(plan, "nlp").cap), "cpu=9,gres/gpu=4,gres/gpu:a40=4");
  EXPECT_TRUE(Qos(plan, "vision-user-overcap").cap.empty());
  EXPECT_TRUE(Qos(plan, "overcap").cap.empty());
  EXPECT_EQ(Accounts(plan),
            "vision-lab < root 4: \n"
            "vision < vision-lab 1: gres/gpu=4 vision,vision-user-overcap (vision) ann\n"
            "vision-overcap < vision-lab 1:  overcap (overcap) ann\n"
            "nlp-lab < root 4: \n"
            "nlp < nlp-lab 1: cpu=9,gres/gpu=4,gres/gpu:a40=4 nlp,nlp-user-overcap (nlp) bob\n"
            "nlp-overcap < nlp-lab 1:  overcap (overcap) bob\n");
  EXPECT_EQ(plan.default_accounts.at("ann"), "vision");
}

TEST(SlurmPolicyPlan, ALabThatBorrowsNothingOrNothingElseHasOneAccount) {
  EXPECT_EQ(Accounts(Plan(Two("partitions: {overcap: {labs: [nlp]}}\n"))).substr(0, 71),
            "vision < root 4: gres/gpu=4 vision,vision-user-overcap (vision) ann\nnlp");
  const SlurmPolicyPlan guest =
      Plan(Two("partitions: {debug: none, short: {labs: [nlp]}, long: none, user-overcap: none}\n"));
  EXPECT_EQ(Accounts(guest).substr(0, 43), "vision < root 4:  overcap (overcap) ann\nnlp");
  EXPECT_EQ(Field(guest, "overcap", "AllowAccounts"), "vision,nlp-overcap");
}

TEST(SlurmPolicyPlan, WhatCountsInFullPreemptsTheRestAndNobodyPreemptsIt) {
  const SlurmPolicyPlan plan = Plan(Two());
  const std::vector<std::string> both = {"nlp-user-overcap", "overcap", "vision-user-overcap"};
  EXPECT_EQ(Qos(plan, "vision").preempt, both);
  EXPECT_EQ(Qos(plan, "nlp-user-overcap").preempt, std::vector<std::string>{"overcap"});
  EXPECT_EQ(Qos(plan, "overcap").preempt, std::vector<std::string>{});
  EXPECT_TRUE(Qos(plan, "overcap").requeue);
  EXPECT_EQ(Qos(plan, "overcap").grace_s, 120);
  EXPECT_EQ(Qos(plan, "overcap").exempt_s, 300);
  EXPECT_FALSE(Qos(plan, "vision").requeue);
}

TEST(SlurmPolicyPlan, OnlyLabmatesPreemptWhereThatIsSaidOfWhatDoesNotYield) {
  const SlurmPolicyPlan plan = Plan(Two("partitions: {long: {preempted_by: [debug], labmates_only: yes}}\n"));
  EXPECT_EQ(Qos(plan, "vision-long").requeue, true);
  const std::vector<std::string>& preempt = Qos(plan, "vision-debug").preempt;
  EXPECT_TRUE(std::ranges::find(preempt, "vision-long") != preempt.end());
  EXPECT_TRUE(std::ranges::find(preempt, "nlp-long") == preempt.end());
}

TEST(SlurmPolicyPlan, PartitionsLetInTheirLabsAndTheirQos) {
  const SlurmPolicyPlan plan = Plan(Two("partitions: {debug: {labs: [nlp], nodes: n2, nodes_per_job: 1}}\n"));
  EXPECT_EQ(Field(plan, "debug", "AllowAccounts"), "nlp");
  EXPECT_EQ(Field(plan, "debug", "Nodes"), "n2");
  EXPECT_EQ(Field(plan, "debug", "MaxNodes"), "1");
  EXPECT_EQ(Field(plan, "debug", "MaxTime"), "04:00:00");
  EXPECT_EQ(Field(plan, "overcap", "AllowQos"), "overcap");
  EXPECT_EQ(Field(plan, "overcap", "AllowAccounts"), "vision-overcap,nlp-overcap");
  EXPECT_EQ(Field(plan, "short", "AllowQos"), "vision,nlp,vision-user-overcap,nlp-user-overcap");
  EXPECT_EQ(Field(plan, "short", "Default"), "YES");
  EXPECT_EQ(Field(plan, "short", "DefCpuPerGPU"), "8");
}

TEST(SlurmPolicyPlan, WhatSlurmCannotDoIsSaid) {
  const SlurmPolicyPlan plan = Plan(
      "nodes: {n1: {gpus: a40:4, cpus: 64}, n2: t4:4}\n"
      "labs: {vision: {gpus: 4, members: [ann, bob], per_user: {gpus: 2}, user_limits: {ann: {gpus: 3}}}}\n"
      "partitions: {debug: {users: [ann]}}\nweights: {user_half_life: 1d}\n");
  EXPECT_TRUE(Says(plan.notes, "partition 'debug': Slurm cannot let single users in"));
  EXPECT_TRUE(Says(plan.notes, "lab 'vision': 'ann' gets the limits of every member"));
  EXPECT_TRUE(Says(plan.notes, "one half-life for labs and users: 7d"));
  EXPECT_TRUE(Says(plan.notes, "between 8 and 16 CPUs for a GPU"));
  EXPECT_TRUE(Says(plan.notes, "has a QOS of its own (sbatch --qos=vision-user-overcap)"));
  EXPECT_TRUE(Says(plan.notes, "(sbatch --account=vision-overcap --qos=overcap)"));
  EXPECT_TRUE(Says(plan.notes, "Slurm stops no job because a cap is full"));
}

TEST(SlurmPolicyPlan, NamesThatWouldBeTwoQosOrTwoAccountsAreRefused) {
  const auto plan = PlanSlurmPolicy(Read("nodes: {n1: a40:8}\nlabs: {overcap: 4 ann}\n"));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "two QOS in Slurm would be called 'overcap'");
  for (const char* name : {"vision-overcap", "vision-lab"}) {
    const auto accounts =
        PlanSlurmPolicy(Read(StrCat("nodes: {n1: a40:8}\nlabs: {vision: 4 ann, ", name, ": 4 ann}\n")));
    ASSERT_FALSE(accounts);
    EXPECT_EQ(accounts.error().message, StrCat("two accounts in Slurm would be called '", name, "'"));
  }
}

TEST(SlurmPolicyPlan, ARenderingHasTheFilesTheCommandsAndTheNotes) {
  const auto rendering = RenderSlurmPolicy(Read(Two()));
  ASSERT_TRUE(rendering);
  ASSERT_EQ(rendering->files.size(), 3u);
  EXPECT_EQ(rendering->files[0].name, "slurm.conf: settings and partitions");
  EXPECT_NE(rendering->files[0].text.find("PreemptType=preempt/qos\n"), std::string::npos);
  EXPECT_NE(rendering->files[0].text.find("SlurmctldParameters=preempt_send_user_signal\n"),
            std::string::npos);
  EXPECT_EQ(rendering->files[2].text, "NodeName=n[1-2] Name=gpu Type=a40 File=/dev/nvidia[0-3]\n");
  EXPECT_EQ(
      ShellJoin(rendering->commands[0]),
      "sacctmgr --immediate add qos overcap PreemptMode=requeue GraceTime=120 PreemptExemptTime=00:05:00");
  EXPECT_FALSE(rendering->notes.empty());
}

// Whatever the labs and partitions: a QOS is made behind those that it preempts, and none preempts itself.
RC_GTEST_PROP(SlurmPolicyPlanProperty, VictimsAreMadeFirst, ()) {
  std::string labs, partitions;
  const int lab_count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < lab_count; i++) labs += StrCat("  lab", i, ": 1 user", i % 2, "\n");
  const int partition_count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < partition_count; i++) {
    const std::string counts = *rc::gen::element<std::string>("yes", "no", "yields");
    std::vector<std::string> by;  // only of those before it: no cycle
    for (int j = 0; j < i; j++) {
      if (*rc::gen::arbitrary<bool>()) by.push_back(StrCat("p", j));
    }
    partitions += StrCat("  p", i, ": {counts: ", counts,
                         ", labmates_only: ", *rc::gen::arbitrary<bool>() ? "yes" : "no", ", preempted_by: [",
                         Join(by, ", "), "], priority: ", *rc::gen::inRange(0, 50), "}\n");
  }
  const Policy policy = Read(
      StrCat("nodes: {n1: a40:8}\nlabs:\n", labs, partitions.empty() ? "" : "partitions:\n", partitions));
  const auto plan = PlanSlurmPolicy(policy);
  RC_ASSERT(plan.has_value());
  std::vector<std::string> made;
  for (const PlannedQos& qos : plan->qos) {
    for (const std::string& victim : qos.preempt) RC_ASSERT(std::ranges::find(made, victim) != made.end());
    made.push_back(qos.name);
  }
}

}  // namespace
}  // namespace overcap
