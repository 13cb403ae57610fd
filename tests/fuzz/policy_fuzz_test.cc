// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <sstream>

#include "clusters/slurm/policy/live_policy.h"
#include "clusters/slurm/policy/policy_difference.h"
#include "inputs.h"
#include "model/policy/policy_text.h"
#include "model/policy/preemption_cycle.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {"nodes:",
                                         "labs:",
                                         "partitions:",
                                         "overcap",
                                         "preempted_by: [",
                                         "gpus: ",
                                         "a40:8",
                                         "none",
                                         "yields",
                                         "counts:",
                                         "99999999999",
                                         "-1",
                                         "[1-9]",
                                         "[1-999999999]",
                                         "{",
                                         "}",
                                         ": ",
                                         "\n  ",
                                         "- ",
                                         "*x",
                                         "&x ",
                                         "\"",
                                         "per_user: {",
                                         "grace: 2m",
                                         "\t",
                                         "maintenance:",
                                         "2026-12-01T08:00:00Z",
                                         "user_limits:",
                                         "total"};

const std::string kSmall =
    "nodes:\n  a[1-2]: {gpus: a40:8, cpus: 128, mem: 1T}\n  r1: rtx_6000:4\nlabs:\n  v: 4 a b\n"
    "  n: {gpus: {total: 8, a40: 4}, members: [a, c], admins: c, per_user: {gpus: 2}, user_limits: {a: "
    "{gpus: none}}}\n";
const std::string kRest =
    "users: {a: {default_lab: n}}\npartitions:\n  debug: {gpus_per_user: 2}\n  long: none\n"
    "  x: {priority: 35, max_time: 1d, labs: [n], counts: yields, preempted_by: [debug], grace: 1m}\n"
    "maintenance:\n  - {name: p, nodes: a1, start: 2026-12-01T08:00:00Z, duration: 8h}\nweights: {age: 3, "
    "age_full: 3d}\n";

TEST(PolicyFuzz, APolicyIsReadOrRefusedWithItsLine) {
  ForEachInput(
      Mutator({kSmall, kSmall + kRest}, kWords, 61).Gently(),
      [&](const std::string& input) {
        const PolicyReading reading = ReadPolicy(input);
        for (const PolicyProblem& problem : reading.problems) {
          EXPECT_FALSE(problem.message.empty());
          EXPECT_EQ(problem.message.find('\n'), std::string::npos);
          EXPECT_LT(problem.message.size(), 1000u);
          EXPECT_GE(problem.line, 0);
        }
        const auto policy = ParsePolicy(input, "p.yaml");
        if (!policy) return ExpectOneLine(policy.error(), ErrorCode::kUsage);
        EXPECT_FALSE(policy->labs.empty());
        EXPECT_FALSE(policy->partitions.empty());
        EXPECT_TRUE(PreemptionCycle(*policy).empty());
        EXPECT_NE(DefaultPartition(*policy), nullptr);
        for (const PolicyLab& lab : policy->labs) {
          EXPECT_FALSE(lab.members.empty());
          EXPECT_LE(lab.gpu_cap, GpuTotal(*policy));
          EXPECT_GT(lab.shares, 0);
        }
        const auto plan = PlanSlurmPolicy(*policy);
        if (!plan) return ExpectOneLine(plan.error(), ErrorCode::kUsage);
        CompareSlurmPolicy(*plan, {}, 0);
        return true;
      },
      kFewUnderstood);
}

TEST(PolicyFuzz, WhatSlurmSaysOfAPolicyIsReadOrRefused) {
  const std::vector<std::string> words = {"|",
                                          "\n",
                                          "=",
                                          ",",
                                          "gres/gpu=",
                                          "99999999999999999999",
                                          "-1",
                                          " ",
                                          "N/A",
                                          "(null)",
                                          "PartitionName=",
                                          "ReservationName=",
                                          "NodeName=",
                                          "UNLIMITED",
                                          "gpu:a40:4(S:0)"};
  const std::string qos =
      "vision|40|over,low|requeue|00:05:00|00:02:00|gres/gpu=4|cpu=8|gres/gpu=2|5|4-00:00:00|0.5\n";
  const std::string account =
      "vision|root|||4|gres/gpu=4|overcap,vision|vision\nvision||ann||1||vision|vision\n";
  const std::string partition =
      "PartitionName=debug AllowAccounts=a,b Default=YES QoS=part-debug MaxTime=04:00:00\n";
  const std::string reservation = "ReservationName=power StartTime=1796112000 EndTime=1796140800 Nodes=n1\n";
  const std::string node = "NodeName=n1 Gres=gpu:a40:4(S:0),gpu:t4:2 OS=Linux 6 #1 \n";
  ForEachInput(Mutator({qos, account, partition, reservation, node, "ann|vision|None\n", "vision|ann,bob\n",
                        "12_[3-5%2]|vision|overcap|PENDING\n7|vision|vision|RUNNING\n"},
                       words, 62),
               [&](const std::string& input) {
                 bool understood = false;
                 const auto look = [&](const auto& result) {
                   if (result)
                     understood = true;
                   else
                     ExpectOneLine(result.error(), ErrorCode::kCorrupt);
                 };
                 look(ParsePolicyQos(input));
                 look(ParsePolicyAssociations(input));
                 look(ParseCoordinators(input));
                 look(ParsePolicyUsers(input));
                 look(ParsePartitionFields(input));
                 look(ParseReservations(input));
                 look(ParsePolicyNodes(input));
                 look(ParsePolicyJobs(input));
                 return understood;
               });
}

}  // namespace
}  // namespace overcap
