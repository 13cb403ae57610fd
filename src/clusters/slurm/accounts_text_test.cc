// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/accounts_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "base/text.h"

namespace overcap {
namespace {

std::string Recorded(std::string_view name) {
  std::ifstream file(StrCat(OVERCAP_TEST_DATA "/slurm-22.05.8/", name), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(AccountsText, AccountsHaveCapsAndMembers) {
  const auto rows = ParseAssociations(Recorded("sacctmgr-associations.txt"));
  ASSERT_TRUE(rows) << rows.error().message;
  const SlurmAssociation* lab_b = nullptr;
  std::vector<std::string> members;
  for (const SlurmAssociation& row : *rows) {
    if (row.account == "lab-b" && row.user.empty()) lab_b = &row;
    if (row.account == "lab-b" && !row.user.empty()) members.push_back(row.user);
    EXPECT_EQ(row.cluster, "lab");
  }
  ASSERT_NE(lab_b, nullptr);
  EXPECT_EQ(lab_b->parent, "root");
  EXPECT_EQ(lab_b->cap, (SlurmCap{8, 64, {{"a40", 6}}}));
  EXPECT_EQ(lab_b->max_jobs, 10);
  EXPECT_EQ(members, (std::vector<std::string>{"bob", "root"}));
}

TEST(AccountsText, TheClassesOfServiceHaveTheirLimits) {
  const auto rows = ParseQos(Recorded("sacctmgr-qos.txt"));
  ASSERT_TRUE(rows) << rows.error().message;
  for (const SlurmQos& qos : *rows) {
    if (qos.name == "p_debug") {
      EXPECT_EQ(qos.per_user.gpus, 2);
      EXPECT_EQ(qos.max_jobs, 20);
      EXPECT_EQ(qos.jobs_per_user, 4);
      EXPECT_EQ(qos.max_time_s, 3600);
    }
    if (qos.name == "p_overcap") {
      EXPECT_EQ(qos.cap.gpus, 1'000'000);
    }
    if (qos.name == "over") {
      EXPECT_EQ(qos.grace_s, 120);
      EXPECT_EQ(qos.exempt_s, 300);
    }
    if (qos.name == "labq") {
      EXPECT_EQ(qos.grace_s, 0);
      EXPECT_EQ(qos.preempts, std::vector<std::string>{"over"});
    }
  }
  EXPECT_EQ(rows->size(), 8u);
}

TEST(AccountsText, UsersHaveAnAccountThatIsTheirsWhenTheyNameNone) {
  const auto rows = ParseUsers(Recorded("sacctmgr-users.txt"));
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].name, "alice");
  EXPECT_EQ((*rows)[0].default_account, "lab-a");
}

TEST(AccountsText, WhatIsCutOffOrSomethingElseIsRefused) {
  const std::string text = Recorded("sacctmgr-associations.txt");
  EXPECT_FALSE(ParseAssociations(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(ParseAssociations("lab|root|\n"));
  EXPECT_FALSE(ParseUsers("error\n"));
  EXPECT_TRUE(ParseQos("")->empty());
}

TEST(AccountsText, StrangeCapsAreNone) {
  EXPECT_EQ(ParseSlurmCap(""), SlurmCap{});
  EXPECT_EQ(ParseSlurmCap("cpu,cpu=,cpu=-1,gres/gpu=x,gres/gpu:=3,gres/gpu=99999999999999"), SlurmCap{});
}

TEST(AccountsText, AClusterWithoutAccountsIsNoFailure) {
  ToolAnswer answer{{1, 0}, "", "You are not running a supported accounting_storage plugin\nOnly ...\n"};
  EXPECT_TRUE(SaysThereAreNoAccounts({"sacctmgr", "show"}, answer));
  EXPECT_FALSE(SaysThereAreNoAccounts({"squeue"}, answer));
  answer.err = "sacctmgr: error: Sending PersistInit msg: Connection refused\n";
  EXPECT_FALSE(SaysThereAreNoAccounts({"sacctmgr", "show"}, answer));
}

}  // namespace
}  // namespace overcap
