// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/accounts_text.h"
#include "clusters/slurm/config_text.h"
#include "clusters/slurm/partition_text.h"
#include "clusters/slurm/slurm_picture.h"
#include "inputs.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {
    "|",  "\n",        "=",      ",",   "gres/gpu=", "gres/gpu:a40=",  "99999999999999999999",
    "-1", "UNLIMITED", "(null)", "N/A", " ",         "PartitionName=", "QoS="};

TEST(SlurmSightFuzz, PartitionsAreReadOrRefused) {
  const std::string row =
      "PartitionName=short AllowAccounts=lab-a,lab-b DenyAccounts=x Default=YES QoS=p_short "
      "MaxTime=2-00:00:00 "
      "PriorityTier=10 PreemptMode=REQUEUE State=UP\n";
  ForEachInput(Mutator({row, row + row}, kWords, 41), [&](const std::string& input) {
    const auto partitions = ParsePartitions(input);
    if (!partitions) return ExpectOneLine(partitions.error(), ErrorCode::kCorrupt);
    for (const SlurmPartition& one : *partitions) {
      EXPECT_FALSE(one.name.empty());
      EXPECT_GE(one.max_time_s, 0);
      EXPECT_TRUE(one.priority_tier >= 0 && one.priority_tier <= 65535);
    }
    return true;
  });
}

TEST(SlurmSightFuzz, AccountsAndClassesOfServiceAreReadOrRefused) {
  const std::string account = "lab|lab-b|root||short|cpu=64,gres/gpu:a40=6,gres/gpu=8|10\n";
  const std::string qos = "p_debug|over,low|gres/gpu=9|20|gres/gpu=2|gres/gpu=4|4|01:00:00\n";
  ForEachInput(Mutator({account, qos, account + account, qos + qos, "alice|lab-a\n"}, kWords, 42),
               [&](const std::string& input) {
                 const auto rows = ParseAssociations(input);
                 for (const SlurmAssociation& row : rows ? *rows : std::vector<SlurmAssociation>()) {
                   EXPECT_GE(row.cap.gpus.value_or(0), 0);
                   EXPECT_GE(row.cap.cpus.value_or(0), 0);
                   EXPECT_GE(row.max_jobs.value_or(0), 0);
                 }
                 const auto classes = ParseQos(input);
                 for (const SlurmQos& row : classes ? *classes : std::vector<SlurmQos>()) {
                   EXPECT_GE(row.per_user.gpus.value_or(0), 0);
                   EXPECT_GE(row.max_time_s, 0);
                 }
                 const auto users = ParseUsers(input);
                 if (!rows) ExpectOneLine(rows.error(), ErrorCode::kCorrupt);
                 if (!users) ExpectOneLine(users.error(), ErrorCode::kCorrupt);
                 return rows || classes || users;
               });
}

TEST(SlurmSightFuzz, TheConfigurationIsReadOrRefused) {
  const std::string text =
      "Configuration data as of 1794735703\nAuthInfo                = socket=/x,cred_expire=5\nPreemptType = "
      "preempt/qos\n";
  ForEachInput(Mutator({text}, kWords, 43), [&](const std::string& input) {
    const auto config = ParseConfig(input);
    if (!config) return ExpectOneLine(config.error(), ErrorCode::kCorrupt);
    (void)config->Word("AuthInfo", "cred_expire");
    return true;
  });
}

TEST(SlurmSightFuzz, FeaturesAndTypesOfGpusAreAlwaysDecided) {
  const std::vector<std::string> texts = {"a40|rtx_6000", "a40&ib", "[rack1*2&rack2*4]", "a40,ib"};
  const std::vector<std::string> words = {"|", "&", "!", "(", ")", "*", ",", "a40"};
  PictureNode node;
  node.gpus = {{"a40", 4}, {"", 2}}, node.gpus_used = {{"a40", 9}}, node.features = {"a40", "ib"};
  ForEachInput(Mutator(texts, words, 44), [&](const std::string& input) {
    const bool matches = FeaturesMatch(node.features, input);
    EXPECT_LE(GpusOfType(node, input), 6);
    EXPECT_GE(FreeGpusOfType(node, input), 0);
    return matches;
  });
}

// Whatever the programs print, the picture can be counted.
TEST(SlurmSightFuzz, WildRowsMakeAPictureThatCanBeCounted) {
  const std::vector<std::string> texts = {"n[1-4]", "short,overcap", "AssocGrpGRES", "0-1,4-9%2", "PENDING"};
  ForEachInput(Mutator(texts, {"[", "]", ",", "-", "%", "_", "n1", "RUNNING"}, 45),
               [&](const std::string& input) {
                 SlurmFacts facts;
                 facts.nodes.nodes.push_back({});
                 facts.nodes.nodes[0].name = "n1", facts.nodes.nodes[0].gpus = {{"a40", 4, 5, {}}};
                 facts.partitions.push_back({});
                 facts.partitions[0].name = input;
                 SqueueJob job;
                 job.job_id = 7, job.array_job_id = 7, job.array_tasks = input, job.node_list = input,
                 job.partition = input;
                 job.raw_state = input, job.raw_reason = input, job.tres.gpus = 2;
                 facts.jobs = {job, job};
                 facts.jobs[1].node_list.clear(), facts.jobs[1].raw_state = "PENDING";
                 facts.associations.push_back({});
                 facts.associations[0].account = input, facts.associations[0].parent = input;
                 const ClusterPicture picture = MakeSlurmPicture(facts);
                 const PictureUse use = UseOf(picture, [](const PictureJob&) { return true; });
                 EXPECT_GE(use.waiting_gpus, 0);
                 (void)CappedLab(picture, input);
                 return !picture.jobs.empty();
               });
}

}  // namespace
}  // namespace overcap
