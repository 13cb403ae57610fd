// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/partition_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace overcap {
namespace {

std::string Recorded() {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/scontrol-show-partition.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(PartitionText, EveryPartitionIsReadWithItsLimits) {
  const auto partitions = ParsePartitions(Recorded());
  ASSERT_TRUE(partitions) << partitions.error().message;
  ASSERT_EQ(partitions->size(), 5u);
  const SlurmPartition& debug = (*partitions)[0];
  EXPECT_EQ(debug.name, "debug");
  EXPECT_EQ(debug.max_time_s, 3600);
  EXPECT_EQ(debug.priority_tier, 20);
  EXPECT_EQ(debug.preempt_mode, "OFF");
  EXPECT_EQ(debug.qos, "p_debug");
  EXPECT_FALSE(debug.is_default);
  EXPECT_TRUE(debug.up);
  EXPECT_TRUE(debug.allowed_accounts.empty());
  EXPECT_TRUE((*partitions)[1].is_default);
  EXPECT_FALSE((*partitions)[2].up);
  EXPECT_EQ((*partitions)[2].allowed_accounts, (std::vector<std::string>{"lab-a", "lab-b"}));
  EXPECT_EQ((*partitions)[4].preempt_mode, "REQUEUE");
}

TEST(PartitionText, NoLimitIsNone) {
  const auto partitions = ParsePartitions(
      "PartitionName=p QoS=N/A MaxTime=UNLIMITED DenyAccounts=x,y PriorityTier=99999999999\n");
  ASSERT_TRUE(partitions);
  EXPECT_EQ((*partitions)[0].max_time_s, 0);
  EXPECT_EQ((*partitions)[0].qos, "");
  EXPECT_EQ((*partitions)[0].denied_accounts, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ((*partitions)[0].priority_tier, 0);
}

TEST(PartitionText, WhatIsCutOffOrSomethingElseIsRefused) {
  const std::string text = Recorded();
  EXPECT_FALSE(ParsePartitions(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(ParsePartitions("slurm_load_partitions error: Unable to contact slurm controller\n"));
  EXPECT_FALSE(ParsePartitions("PartitionName= State=UP\n"));
  EXPECT_TRUE(ParsePartitions("")->empty());
}

}  // namespace
}  // namespace overcap
