// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/submit_place.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

SlurmPartition Partition(std::string name, std::vector<std::string> accounts, std::vector<std::string> qos) {
  SlurmPartition partition;
  partition.name = std::move(name);
  partition.allowed_accounts = std::move(accounts), partition.allowed_qos = std::move(qos);
  return partition;
}

// As a policy makes them.
std::vector<SlurmPartition> Partitions() {
  const std::vector<std::string> labs = {"vision", "vision-2"}, over = {"vision-overcap", "vision-2-overcap"};
  return {Partition("short", labs, {"vision", "vision-2", "vision-user-overcap", "vision-2-user-overcap"}),
          Partition("user-overcap", labs, {"vision-user-overcap", "vision-2-user-overcap"}),
          Partition("overcap", over, {"overcap"}), Partition("free", {}, {})};
}

SubmitPlace Choose(std::vector<std::string> names, std::string account, std::string qos = "",
                   const std::string& standard = "vision-2") {
  return ChoosePlace({std::move(names), std::move(account), std::move(qos)}, Partitions(), standard);
}

TEST(SubmitPlace, WithinTheCapNothingIsAdded) {
  EXPECT_EQ(Choose({"short"}, "vision"), (SubmitPlace{{"short"}, "vision", ""}));
  EXPECT_EQ(Choose({"short"}, ""), (SubmitPlace{{"short"}, "", ""}));
  EXPECT_EQ(Choose({"free"}, "vision"), (SubmitPlace{{"free"}, "vision", ""}));
  EXPECT_EQ(Choose({}, "vision"), (SubmitPlace{{}, "vision", ""}));
}

TEST(SubmitPlace, WhatDoesNotCountHasTheLabsOtherAccount) {
  EXPECT_EQ(Choose({"overcap"}, "vision"), (SubmitPlace{{"overcap"}, "vision-overcap", "overcap"}));
  EXPECT_EQ(Choose({"overcap"}, ""), (SubmitPlace{{"overcap"}, "vision-2-overcap", "overcap"}));
  EXPECT_EQ(Choose({"overcap"}, "vision-overcap"), (SubmitPlace{{"overcap"}, "vision-overcap", "overcap"}));
  EXPECT_EQ(Choose({"overcap"}, "nlp").account, "nlp");
}

TEST(SubmitPlace, WhatYieldsHasTheQosOfItsOwnLab) {
  EXPECT_EQ(Choose({"user-overcap"}, "vision").qos, "vision-user-overcap");
  EXPECT_EQ(Choose({"short", "user-overcap"}, ""),
            (SubmitPlace{{"short", "user-overcap"}, "", "vision-2-user-overcap"}));
  EXPECT_EQ(Choose({"user-overcap"}, "vision", "other").qos, "other");
}

TEST(SubmitPlace, WhatGoesTogetherNowhereOrIsNotKnownStaysAsItIs) {
  EXPECT_EQ(Choose({"short", "overcap"}, "vision"), (SubmitPlace{{"short", "overcap"}, "vision", ""}));
  EXPECT_EQ(Choose({"overcap", "new"}, "vision"), (SubmitPlace{{"overcap", "new"}, "vision", ""}));
  EXPECT_EQ(Choose({"overcap"}, "", "", ""), (SubmitPlace{{"overcap"}, "", ""}));
}

TEST(SubmitPlace, ItMattersWherePartitionsDoNotTakeAll) {
  EXPECT_TRUE(PlaceMatters({{"free", "overcap"}, "", ""}, Partitions()));
  EXPECT_FALSE(PlaceMatters({{"free"}, "", ""}, Partitions()));
  EXPECT_FALSE(PlaceMatters({{"overcap", "new"}, "", ""}, Partitions()));
}

}  // namespace
}  // namespace overcap
