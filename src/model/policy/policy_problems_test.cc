// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy_problems.h"

#include <gtest/gtest.h>

#include "model/policy/policy_text.h"
#include "model/policy/preemption_cycle.h"

namespace overcap {
namespace {

std::string Problems(const std::string& text) {
  std::string all;
  for (const PolicyProblem& problem : ReadPolicy(text).problems)
    all += (problem.warning ? "w" : "") + std::to_string(problem.line) + ": " + problem.message + "\n";
  return all;
}

std::string WithLabs(const std::string& labs) {
  return Problems("nodes:\n  a[1-2]: a40:8\n  r1: rtx_6000:4\nlabs:\n" + labs);
}

std::string WithPartitions(const std::string& partitions) {
  return Problems("nodes: {\"a[1-2]\": a40:8}\nlabs: {x: 8 ann bob, y: 4 carol}\npartitions:\n" + partitions);
}

TEST(PolicyProblems, ACapLargerThanTheClusterIsNamed) {
  EXPECT_EQ(WithLabs("  x: 21 ann\n"),
            "5: lab 'x' has a cap of 21 GPUs, the cluster has 20\n"
            "5: the labs have caps of 21 GPUs together, the cluster has 20\n");
  EXPECT_EQ(WithLabs("  x: {gpus: {rtx_6000: 5}, members: ann}\n"),
            "5: lab 'x' has a cap of 5 rtx_6000, the cluster has 4\n"
            "5: the labs have caps of 5 rtx_6000 together, the cluster has 4\n");
  EXPECT_EQ(WithLabs("  x: {gpus: {v100: 1}, members: ann}\n"),
            "5: lab 'x' has a cap for 'v100', and no node has such GPUs\n");
  EXPECT_EQ(WithLabs("  x: {gpus: {total: 2, a40: 3}, members: ann}\n"),
            "5: lab 'x' has a cap of 3 a40, more than its cap of 2 in all\n");
  EXPECT_EQ(WithLabs("  x: {gpus: 2, cpus: 1000, members: ann}\n"),
            "5: lab 'x' has a cap of 1000 CPUs, the cluster has 160\n");
}

TEST(PolicyProblems, WhatTheSchedulerCannotHoldIsNamed) {
  std::string nodes = "nodes:\n", partitions;
  for (int i = 0; i < 64; ++i) {
    nodes += "  n" + std::to_string(i) + ": t" + std::to_string(i) + ":1\n";
    partitions += "  p" + std::to_string(i) + ": {}\n";
  }
  const std::string labs = "labs: {x: 1 ann}\n";
  EXPECT_EQ(Problems(nodes + labs), "65: GPU type 't63' of nodes 'n63' is the 64th: a policy can have 63\n");
  EXPECT_EQ(Problems("nodes: {a: a40:64}\n" + labs), "");
  EXPECT_EQ(Problems("nodes:\n  a: a40:64\n  b: a40:65\n" + labs),
            "3: nodes 'b' have 65 a40 each: a node can have 64 of one type\n");
  EXPECT_EQ(Problems("nodes: {a: a40:8}\n" + labs + "partitions:\n" + partitions),
            "63: partition 'p59' is the 65th: a policy can have 64, with those that are there by default\n");
}

TEST(PolicyProblems, CapsTogetherMayBeLargerOnlyWhenThatIsSaid) {
  EXPECT_EQ(WithLabs("  x: 12 ann\n  y: 12 bob\n"),
            "5: the labs have caps of 24 GPUs together, the cluster has 20\n");
  EXPECT_EQ(WithLabs("  x: 12 ann\n  y: 12 bob\noversubscribe: yes\n"), "");
}

TEST(PolicyProblems, ALabWithoutMembersIsNamed) {
  EXPECT_EQ(WithLabs("  x: 12 ann\n  y: 1\n"), "6: lab 'y' has no members\n");
  EXPECT_EQ(WithLabs("  x: {gpus: 1, admins: [ann]}\n"), "");
}

TEST(PolicyProblems, NamesThatStandTwiceAreNamed) {
  EXPECT_EQ(WithLabs("  x: 1 ann\n  X: 1 ann\n"), "6: there are two labs 'X' (the other is called 'x')\n");
  EXPECT_EQ(Problems("nodes:\n  a[1-2]: a40:8\n  a2: a40:8\nlabs: {x: 1 a}\n"),
            "3: host 'a2' stands in 'nodes' a second time; the first is in line 2\n");
}

TEST(PolicyProblems, APartitionThatNobodyMayUseIsNamed) {
  EXPECT_EQ(WithPartitions("  debug: {users: [zoe]}\n"), "4: nobody may use partition 'debug'\n");
  EXPECT_EQ(WithPartitions("  debug: {users: [carol], labs: [x]}\n"),
            "4: nobody may use partition 'debug'\n");
  EXPECT_EQ(WithPartitions("  debug: {users: [carol], labs: [y]}\n"), "");
  EXPECT_EQ(WithPartitions("  debug: {labs: []}\n"),
            "4: 'labs' of partition 'debug' is empty: nobody may use the partition\n");
  EXPECT_EQ(WithPartitions("  debug: {users: []}\n"),
            "4: 'users' of partition 'debug' is empty: nobody may use the partition\n");
  EXPECT_EQ(WithPartitions("  debug: {labs: [z]}\n"),
            "4: 'labs' of partition 'debug': there is no lab 'z'\n4: nobody may use partition 'debug'\n");
  EXPECT_EQ(WithPartitions("  debug: {nodes: \"b[1-2]\"}\n"),
            "4: 'nodes' of partition 'debug' names the host 'b1', which is not in 'nodes'\n");
  EXPECT_EQ(WithPartitions("  debug: {jobs_per_user: 0}\n"),
            "4: nobody may use partition 'debug': its limits are 0\n");
  EXPECT_EQ(
      WithPartitions("  debug: none\n  short: none\n  long: none\n  user-overcap: none\n  overcap: none\n"),
      "1: there is no partition\n");
}

TEST(PolicyProblems, CyclicPreemptionIsNamed) {
  EXPECT_EQ(WithPartitions("  long:\n    preempted_by: [overcap]\n"),
            "4: cyclic preemption: long is preempted by overcap is preempted by long\n");
  EXPECT_EQ(WithPartitions("  long: {preempted_by: [long]}\n"), "4: partition 'long' preempts itself\n");
  EXPECT_EQ(WithPartitions("  long: {preempted_by: [debugg]}\n"),
            "4: 'preempted_by' of partition 'long': there is no partition 'debugg'\n");
  EXPECT_EQ(WithPartitions("  long: {preempted_by: [debug]}\n"), "");
}

TEST(PolicyProblems, WhatDoesNothingIsAWarning) {
  EXPECT_EQ(WithPartitions("  long: {grace: 1m}\n"),
            "w4: partition 'long' is preempted by nobody: its grace, quantum and labmates_only do nothing\n");
  EXPECT_EQ(WithPartitions("  overcap: {preempted_by: none}\n"),
            "w4: partition 'overcap' counts against no cap and is preempted by nobody: who borrows there "
            "never gives "
            "back\n");
}

TEST(PolicyProblems, TimesThatDoNotFitAreNamed) {
  EXPECT_EQ(WithPartitions("  debug: {default_time: 5h}\n"),
            "4: 'default_time' of partition 'debug' is above its 'max_time'\n");
  EXPECT_EQ(WithPartitions("  debug: {default: yes}\n  long: {default: yes}\n"),
            "5: partitions 'debug' and 'long' are both the default\n");
  EXPECT_EQ(WithPartitions("  debug: {priority: 1}\nmaintenance:\n"
                           "  - {start: 2026-12-02T00:00:00Z, end: 2026-12-01T00:00:00Z}\n"
                           "  - {start: 2026-12-02T00:00:00Z, duration: 1h, nodes: z9}\n"),
            "6: maintenance 'maintenance-1' ends before it starts\n"
            "7: maintenance 'maintenance-2' names the host 'z9', which is not in 'nodes'\n");
}

TEST(PolicyProblems, PoliciesWithoutCyclesHaveNone) {
  Policy policy;
  policy.partitions = BuiltInPartitions();
  EXPECT_EQ(PreemptionCycle(policy), std::vector<std::string>{});
  policy.partitions[0].preempted_by = {"short"};
  policy.partitions[1].preempted_by = {"long"};
  policy.partitions[2].preempted_by = {"debug"};
  EXPECT_EQ(PreemptionCycle(policy), (std::vector<std::string>{"debug", "short", "long", "debug"}));
}

}  // namespace
}  // namespace overcap
