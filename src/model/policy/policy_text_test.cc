// SPDX-License-Identifier: Apache-2.0
#include "model/policy/policy_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace overcap {
namespace {

constexpr const char* kSmall =
    "nodes:\n"
    "  a[1-2]: {gpus: a40:8, cpus: 128}\n"
    "  r1: rtx_6000:4\n"
    "labs:\n"
    "  vision: 12 bob ann\n"
    "  nlp: {gpus: {total: 8, A40: 4}, members: [ann, carol], admins: carol}\n";

Policy Read(const std::string& text) {
  auto policy = ParsePolicy(text, "p.yaml");
  if (!policy) ADD_FAILURE() << policy.error().message << " | " << policy.error().hint;
  return policy ? std::move(*policy) : Policy{};
}

// "3: unknown key ... | hint", one line for each problem; warnings begin with "w".
std::string Problems(const std::string& text) {
  std::string all;
  for (const PolicyProblem& problem : ReadPolicy(text).problems) {
    all += (problem.warning ? "w" : "") + std::to_string(problem.line) + ": " + problem.message;
    all += problem.hint.empty() ? "\n" : " | " + problem.hint + "\n";
  }
  return all;
}

// A problem of what is added to the small policy; lines count from the end of it.
std::string After(const std::string& more) {
  return Problems(kSmall + more);
}

std::string Example() {
  std::ifstream file(OVERCAP_TEST_DATA "/../../examples/pooled-cluster-policy.yaml");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PolicyText, NodesAndLabsAloneMakeAWorkingPolicy) {
  const Policy policy = Read(kSmall);
  EXPECT_EQ(Problems(kSmall), "");
  ASSERT_EQ(policy.labs.size(), 2u);
  EXPECT_EQ(policy.labs[0].gpu_cap, 12);
  EXPECT_EQ(policy.labs[0].members, (std::vector<std::string>{"ann", "bob"}));
  EXPECT_EQ(policy.labs[1].gpu_cap, 8);
  EXPECT_EQ(policy.labs[1].type_caps, (std::vector<TypedGpus>{{"a40", 4}}));
  EXPECT_EQ(policy.labs[1].shares, 8);
  EXPECT_EQ(policy.nodes[0].names, (std::vector<std::string>{"a1", "a2"}));
  EXPECT_EQ(policy.nodes[0].cpus_per_gpu, 16);
  EXPECT_EQ(policy.nodes[1].cpus, 32);
  EXPECT_EQ(GpuTotal(policy), 20);
}

TEST(PolicyText, TheFivePartitionsAreThereWithoutBeingNamed) {
  const Policy policy = Read(kSmall);
  const std::vector<PolicyPartition> built_in = BuiltInPartitions();
  ASSERT_EQ(policy.partitions.size(), built_in.size());
  for (size_t i = 0; i < built_in.size(); i++) {
    EXPECT_EQ(policy.partitions[i].name, built_in[i].name);
    EXPECT_EQ(policy.partitions[i].priority, built_in[i].priority);
    EXPECT_EQ(policy.partitions[i].preempted_by, built_in[i].preempted_by);
    EXPECT_EQ(policy.partitions[i].labmates_only, built_in[i].labmates_only);
    EXPECT_EQ(policy.partitions[i].grace_s, built_in[i].grace_s);
    EXPECT_EQ(policy.partitions[i].quantum_s, built_in[i].quantum_s);
    EXPECT_EQ(policy.partitions[i].default_time_s, built_in[i].default_time_s);
    EXPECT_EQ(policy.partitions[i].is_default, built_in[i].is_default);
  }
  EXPECT_EQ(DefaultPartition(policy)->name, "short");
  EXPECT_EQ(FindPolicyPartition(policy, "debug")->per_user.gpus, 5);
}

TEST(PolicyText, AKeyUnderOneOfTheFiveChangesThatKeyOnly) {
  const Policy policy = Read(std::string(kSmall) +
                             "partitions:\n"
                             "  debug: {gpus_per_user: 2}\n"
                             "  long: none\n"
                             "  deadline: {priority: 35, max_time: 1d, labs: [nlp]}\n");
  const PolicyPartition* debug = FindPolicyPartition(policy, "debug");
  EXPECT_EQ(debug->per_user.gpus, 2);
  EXPECT_EQ(debug->max_time_s, 4 * 3600);
  EXPECT_EQ(FindPolicyPartition(policy, "long"), nullptr);
  EXPECT_EQ(FindPolicyPartition(policy, "overcap")->preempted_by,
            (std::vector<std::string>{"debug", "deadline", "short", "user-overcap"}));
  EXPECT_EQ(FindPolicyPartition(policy, "deadline")->grace_s, 0);
}

TEST(PolicyText, AUserMayBeInSeveralLabsAndHasADefaultOne) {
  const std::string text = kSmall;
  EXPECT_EQ(LabsOf(Read(text), "ann"), (std::vector<std::string>{"vision", "nlp"}));
  const Policy policy = Read(text + "users: {ann: {default_lab: nlp}}\n");
  EXPECT_EQ(LabsOf(policy, "ann"), (std::vector<std::string>{"nlp", "vision"}));
  EXPECT_EQ(LabsOf(policy, "nobody"), std::vector<std::string>{});
}

TEST(PolicyText, LimitsOfSingleUsersStandOverThoseOfAll) {
  const Policy policy = Read(
      "nodes: {n1: a40:8}\n"
      "labs: {x: {gpus: 8, members: a b c, per_user: {gpus: 4, jobs: 2}, user_limits: {b: {gpus: none}, c: "
      "{cpus: 7}}}}\n");
  EXPECT_EQ(LimitsOf(policy.labs[0], "a"), (PolicyUserLimits{4, {}, 2}));
  EXPECT_EQ(LimitsOf(policy.labs[0], "b"), (PolicyUserLimits{{}, {}, 2}));
  EXPECT_EQ(LimitsOf(policy.labs[0], "c"), (PolicyUserLimits{4, 7, 2}));
}

TEST(PolicyText, OnlyLabmatesPreemptUserOvercap) {
  const Policy policy = Read(kSmall);
  const PolicyPartition& short_one = *FindPolicyPartition(policy, "short");
  const PolicyPartition& yields = *FindPolicyPartition(policy, "user-overcap");
  const PolicyPartition& over = *FindPolicyPartition(policy, "overcap");
  EXPECT_TRUE(MayPreempt(short_one, "vision", yields, "vision"));
  EXPECT_FALSE(MayPreempt(short_one, "nlp", yields, "vision"));
  EXPECT_TRUE(MayPreempt(yields, "nlp", over, "vision"));
  EXPECT_FALSE(MayPreempt(over, "vision", yields, "vision"));
  EXPECT_FALSE(MayPreempt(short_one, "vision", short_one, "vision"));
}

TEST(PolicyText, TheExampleOfTheFormatIsRead) {
  std::ifstream file(OVERCAP_TEST_DATA "/../../docs/formats/policy.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const size_t title = text.find("## Example with everything");
  const size_t begin = text.find("```yaml\n", title) + 8;
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  EXPECT_EQ(Problems(example), "");
  const Policy policy = Read(example);
  EXPECT_EQ(policy.cluster, "sky");
  EXPECT_EQ(policy.maintenance.size(), 1u);
  EXPECT_EQ(policy.maintenance[0].end_us - policy.maintenance[0].start_us, int64_t{8} * 3600 * 1'000'000);
  EXPECT_EQ(policy.weights.lab_share, 2000);
  EXPECT_EQ(policy.weights.age_full_s, 3 * 86400);
  EXPECT_EQ(LimitsOf(*FindPolicyLab(policy, "vision"), "eve").gpus, std::nullopt);
  EXPECT_EQ(LimitsOf(*FindPolicyLab(policy, "vision"), "eve").cpus, 112);
}

TEST(PolicyText, TheShippedExampleHasThirteenLabsAnd284GpusInFewLines) {
  const std::string text = Example();
  EXPECT_EQ(Problems(text), "");
  const Policy policy = Read(text);
  EXPECT_EQ(policy.labs.size(), 13u);
  EXPECT_EQ(GpuTotal(policy), 284);
  EXPECT_EQ(GpusOf(policy),
            (std::vector<TypedGpus>{{"2080_ti", 80}, {"a40", 68}, {"rtx_6000", 88}, {"titan_x", 48}}));
  int caps = 0, lines = 0;
  for (const PolicyLab& lab : policy.labs) caps += lab.gpu_cap;
  EXPECT_EQ(caps, 284);
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines += !line.empty() && line[0] != '#';
  EXPECT_LE(lines, 10);
  EXPECT_EQ(policy.partitions.size(), 5u);
}

TEST(PolicyText, AnUnknownKeyIsNamedWithTheNearestKnownOne) {
  EXPECT_EQ(After("partition: {}\n"), "7: unknown key 'partition' | did you mean 'partitions'?\n");
  EXPECT_EQ(After("partitions:\n  debug:\n    prioritty: 3\n"),
            "9: unknown key 'prioritty' of partition 'debug' | did you mean 'priority'?\n");
  EXPECT_EQ(Problems("nodes: {n1: {gpu: a40:8, cpus: 2}}\nlabs: {x: 0 a}\n"),
            "1: unknown key 'gpu' of nodes 'n1' | did you mean 'gpus'?\n");
  EXPECT_EQ(Problems("nodes: {n1: a40:8}\nlabs:\n  x:\n    gpus: 8\n    member: [a]\n"),
            "5: unknown key 'member' of lab 'x' | did you mean 'members'?\n");
  EXPECT_EQ(After("weights: {agee: 1}\n"), "7: unknown key 'agee' of 'weights' | did you mean 'age'?\n");
  EXPECT_EQ(After("maintenance:\n  - {beginn: 1}\n").substr(0, 44),
            "8: unknown key 'beginn' of maintenance 1 | o");
}

TEST(PolicyText, EveryErrorIsToldNotTheFirstAlone) {
  EXPECT_EQ(
      Problems(
          "nodes: {n1: 8 a40}\nlabs:\n  x: eight a\n  y: {members: [b]}\npartitions: {debug: {grace: 2h}}\n"),
      "1: 'n1' of 'nodes' must be GPUs by type such as a40:8, not '8 a40'\n"
      "1: nodes 'n1' have neither 'gpus' nor 'cpus'\n"
      "3: 'x' of 'labs' must be a mapping, or the cap and the members: 16 ann bob, not 'eight a'\n"
      "3: lab 'x' has no 'gpus' | say how many it may have at the same time\n"
      "4: lab 'y' has no 'gpus' | say how many it may have at the same time\n"
      "5: 'grace' of partition 'debug' must be a duration of at most 1h such as 90s or 2m, not '2h'\n");
}

TEST(PolicyText, WhatIsNoPolicyIsNamed) {
  EXPECT_EQ(Problems(""),
            "1: must be 'key: value' lines\n1: there are no 'nodes' | say which machines there are: "
            "'nodes: {a[01-08]: a40:8}'\n1: there are no 'labs' | say who owns how many GPUs: 'labs: "
            "{vision: 16 ann bob}'\n");
  EXPECT_EQ(Problems("nodes: [\n").substr(0, 3), "2: ");
  EXPECT_EQ(Problems("nodes: *x\n").substr(0, 3), "1: ");
  EXPECT_EQ(After("labs: {}\n").substr(0, 39), "7: 'labs' stands here a second time\n");
}

TEST(PolicyText, ABrokenFileIsAnErrorOfUse) {
  const auto policy = ParsePolicy("nodes: {n1: a40:8}\nlabs: {x: 8}\n", "p.yaml");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().code, ErrorCode::kUsage);
  EXPECT_EQ(policy.error().message, "p.yaml:2: lab 'x' has no members");
}

TEST(PolicyText, HostListsCannotMakeASmallFileHuge) {
  std::string text = "labs: {x: 0 a}\nnodes:\n";
  for (int i = 0; i < 50; i++) text += "  h" + std::to_string(i) + "n[1-900000]: {cpus: 1}\n";
  const std::string problems = Problems(text);
  EXPECT_NE(problems.find("4: the host lists of the file name more than 1000000 hosts\n"), std::string::npos)
      << problems;
}

}  // namespace
}  // namespace overcap
