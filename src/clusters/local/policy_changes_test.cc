// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/policy_changes.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "model/policy/policy_text.h"

namespace overcap {
namespace {

constexpr std::string_view kPolicy =
    "nodes:\n  here: {gpus: a40:8, cpus: 64}\nlabs:\n  vision: {gpus: 4, members: [ann, bob]}\n  nlp: 4 "
    "carl\n";

Policy Read(std::string_view text) {
  auto policy = ParsePolicy(std::string(text), "p.yaml");
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? *policy : Policy();
}

std::string Changed(std::string_view wanted) {
  const Policy now = Read(kPolicy);
  return Join(PolicyChanges(&now, Read(wanted)), "\n");
}

std::string With(std::string_view more) {
  return Changed(StrCat(kPolicy, more));
}

TEST(PolicyChanges, ToldIsWhatDiffersAndNothingElse) {
  EXPECT_EQ(With("# a comment\n"), "keep the new text of the file: it says the same");
  EXPECT_EQ(With("partitions:\n  overcap: {grace: 5m}\n"), "partition 'overcap': grace 2m -> 5m");
  EXPECT_EQ(With("partitions:\n  long: none\n"),
            "remove partition 'long'\n"
            "partition 'user-overcap': preempted_by debug short long -> debug short\n"
            "partition 'overcap': preempted_by debug short long user-overcap -> debug short user-overcap");
  EXPECT_EQ(With("partitions:\n  fast: {priority: 35, max_time: 1h, labs: [nlp]}\n").substr(0, 57),
            "add partition 'fast': priority 35, max_time 1h, labs nlp\n");
}

// Each key of the format that has an effect.
TEST(PolicyChanges, EveryKeyOfThePolicyIsTold) {
  for (const auto& [more, told] : std::vector<std::pair<std::string, std::string>>{
           {"weights: {lab_share: 2000}\n", "weight lab_share 1000 -> 2000"},
           {"weights: {user_share: 1, age: 2, size: 3}\n",
            "weight user_share 500 -> 1\nweight age 300 -> 2\nweight size 50 -> 3"},
           {"weights: {age_full: 3d, lab_half_life: none, user_half_life: 1d}\n",
            "age_full 7d -> 3d\nlab_half_life 7d -> none\nuser_half_life 7d -> 1d"},
           {"admins: [root]\n", "admins none -> root"},
           {"oversubscribe: yes\n", "oversubscribe no -> yes"},
           {"cluster: sky\n", "cluster none -> sky"},
           {"maintenance:\n  - {name: power, start: 2026-12-01T08:00:00Z, duration: 8h}\n",
            "add maintenance 'power': nodes all, start 2026-12-01T08:00:00.000000Z, end "
            "2026-12-01T16:00:00.000000Z"},
           {"partitions: {short: {default_time: 1h}}\n", "partition 'short': default_time max_time -> 1h"},
           {"partitions: {short: {cpus_per_user: 3, jobs_per_user: 4}}\n",
            "partition 'short': cpus_per_user none -> 3, jobs_per_user none -> 4"},
           {"partitions: {short: {gpus_per_job: 3, nodes_per_job: 1}}\n",
            "partition 'short': gpus_per_job none -> 3, nodes_per_job none -> 1"},
           {"partitions: {short: {mem_per_gpu: 4G, cpus_per_gpu: 2}}\n",
            "partition 'short': cpus_per_gpu those of the node -> 2, mem_per_gpu none -> 4.0 GiB"},
           {"partitions: {short: {charge: 0.5}}\n", "partition 'short': charge 1 -> 0.5"},
           {"partitions: {overcap: {labmates_only: yes}}\n", "partition 'overcap': labmates_only no -> yes"},
           {"partitions: {short: {users: [ann], nodes: here}}\n",
            "partition 'short': users all -> ann, nodes all -> here"},
           {"partitions: {long: {default: yes}}\n",
            "partition 'short': default yes -> no\npartition 'long': default no -> yes"}}) {
    EXPECT_EQ(With(more), told) << more;
  }
}

TEST(PolicyChanges, OfALabEverythingIsTold) {
  const auto lab = [](std::string_view vision) {
    return Changed(
        StrCat("nodes:\n  here: {gpus: a40:8, cpus: 64}\nlabs:\n  vision: ", vision, "\n  nlp: 4 carl\n"));
  };
  EXPECT_EQ(lab("{gpus: 4, members: [ann, bob], per_user: {gpus: 2}}"),
            "lab 'vision': per_user none -> gpus 2 cpus none jobs none");
  EXPECT_EQ(lab("{gpus: 4, members: [ann, bob], shares: 2.5}"), "lab 'vision': shares 4 -> 2.5");
  EXPECT_EQ(lab("{gpus: {a40: 4}, members: [ann, bob]}"), "lab 'vision': gpus by type none -> a40:4");
  EXPECT_EQ(lab("{gpus: 4, cpus: 9, members: [ann], admins: [bob]}"),
            "lab 'vision': cpus none -> 9, admins none -> bob");
  EXPECT_EQ(lab("{gpus: 4, members: [ann, bob], user_limits: {ann: {jobs: 1}}}"),
            "lab 'vision': user_limits none -> ann (gpus none cpus none jobs 1)");
}

}  // namespace
}  // namespace overcap
