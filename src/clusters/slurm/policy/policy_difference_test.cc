// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/policy_difference.h"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "base/text.h"
#include "clusters/slurm/policy/slurm_policy.h"
#include "model/policy/policy_text.h"

namespace overcap {
namespace {

std::string Recorded(const std::string& name) {
  std::ifstream file(std::string(OVERCAP_TEST_DATA "/slurm-22.05.8/") + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <typename T>
T Must(Result<T> result) {
  if (!result) ADD_FAILURE() << result.error().message;
  return result ? std::move(*result) : T{};
}

// What the cluster said on which the recorded policy had been applied.
LivePolicy Live() {
  LivePolicy live;
  live.config = Must(ParseConfig(Recorded("policy-config.txt")));
  live.qos = Must(ParsePolicyQos(Recorded("policy-qos.txt")));
  live.accounts = Must(ParsePolicyAssociations(Recorded("policy-associations.txt")));
  live.users = Must(ParsePolicyUsers(Recorded("policy-users.txt")));
  live.partitions = Must(ParsePartitionFields(Recorded("policy-partitions.txt")));
  live.reservations = Must(ParseReservations(Recorded("policy-reservations.txt")));
  live.nodes = Must(ParsePolicyNodes(Recorded("policy-nodes.txt")));
  live.jobs = Must(ParsePolicyJobs(Recorded("policy-jobs.txt")));
  auto people = Must(ParseCoordinators(Recorded("policy-coordinators.txt")));
  for (PlannedAccount& account : live.accounts) account.coordinators = people[account.name];
  return live;
}

// Of the recorded policy with `fresh` in place of `old`.
SlurmPolicyPlan Plan(const std::string& old, const std::string& fresh) {
  std::string text = Recorded("policy.yaml");
  if (!old.empty()) {
    EXPECT_NE(text.find(old), std::string::npos) << old;
    text.replace(text.find(old), old.size(), fresh);
  }
  return Must(PlanSlurmPolicy(Must(ParsePolicy(text, "policy.yaml"))));
}

// The recorded cluster with the QOS and accounts of another policy.
LivePolicy LiveAfter(SlurmPolicyPlan plan) {
  LivePolicy live = Live();
  live.qos = std::move(plan.qos);
  live.accounts = std::move(plan.accounts);
  return live;
}

PolicyDifference Compare(const std::string& old, const std::string& fresh, const LivePolicy& live) {
  return CompareSlurmPolicy(Plan(old, fresh), live, 0);
}

std::string Steps(const PolicyDifference& difference) {
  std::string all;
  for (const PolicyStep& step : difference.steps) all += step.text + "\n";
  return all;
}

std::string Settings(const PolicyDifference& difference) {
  std::string all;
  for (const PolicySetting& one : difference.settings)
    all += StrCat(one.why, " | ", one.line.substr(0, 60), "\n");
  return all;
}

TEST(SlurmPolicyDifference, WhatWasAppliedIsAsItShouldBe) {
  const PolicyDifference difference = Compare("", "", Live());
  EXPECT_EQ(Steps(difference), "");
  EXPECT_EQ(Settings(difference), "");
  EXPECT_EQ(difference.notes,
            std::vector<std::string>{"partition 'boot' is not in the policy and stays as it is"});
}

TEST(SlurmPolicyDifference, OnlyWhatDiffersIsChanged) {
  const LivePolicy live = Live();
  EXPECT_EQ(Steps(Compare("gpus_per_user: 2", "gpus_per_user: 3", live)),
            "change qos 'part-debug': MaxTRESPerUser=gres/gpu=3\n");
  EXPECT_EQ(Steps(Compare("{charge: 0.5}", "{charge: 1}", live)),
            "change qos 'overcap': UsageFactor=1.000000\n");
  EXPECT_EQ(Steps(Compare("shares: 2", "shares: 3", live)), "change account 'language-lab': Fairshare=3\n");
  EXPECT_EQ(Steps(Compare("members: root carol", "members: root dan", live)),
            "add to account 'language': dan\nadd to account 'language-overcap': dan\n"
            "remove from account 'language-overcap': carol\nremove from account 'language': carol\n");
  EXPECT_EQ(Steps(Compare("admins: [bob]", "admins: [root]", live)),
            "admins of account 'vision': root\nno longer admins of account 'vision': bob\n"
            "admins of account 'vision-overcap': root\nno longer admins of account 'vision-overcap': bob\n");
  EXPECT_EQ(Steps(Compare("gpus: {total: 4, a40: 3}", "gpus: 3", live)),
            "change qos 'vision': GrpTRES=gres/gpu=3,gres/gpu:a40=-1\n"
            "change account 'vision-lab': Fairshare=3\n"
            "change account 'vision': GrpTRES=gres/gpu=3,gres/gpu:a40=-1\n");
  EXPECT_EQ(Steps(Compare("duration: 8h", "duration: 9h", live)).substr(0, 38),
            "change maintenance 'power' of n1 from ");
}

TEST(SlurmPolicyDifference, ACapThatSomebodyPutOnAnAccountThatHasNoneIsTakenAway) {
  LivePolicy live = Live();
  for (PlannedAccount& account : live.accounts) {
    if (account.name == "vision-lab" || account.name == "vision-overcap") account.cap["gres/gpu"] = 1;
  }
  EXPECT_EQ(Steps(Compare("", "", live)),
            "change account 'vision-lab': GrpTRES=gres/gpu=-1\n"
            "change account 'vision-overcap': GrpTRES=gres/gpu=-1\n");
}

TEST(SlurmPolicyDifference, JobsThatWaitAreMovedWhenTheirLabGetsAnAccountForThem) {
  LivePolicy live =
      LiveAfter(Plan("debug: {",
                     "short: {labs: [vision]}\n  long: {labs: [vision]}\n  user-overcap: {labs: [vision]}\n"
                     "  debug: {labs: [vision], "));
  live.jobs = {{"7", "language", "overcap", true},
               {"8_[0-4]", "language", "overcap", true},
               {"9", "language", "overcap", false},
               {"10", "vision", "vision", true},
               {"11", "vision-overcap", "overcap", true},
               {"12", "vision", "vision-user-overcap", false},
               {"13", "gone", "overcap", true}};
  const PolicyDifference difference = Compare("", "", live);
  EXPECT_EQ(Steps(difference),
            "add qos 'language-user-overcap': Priority=10 Preempt=overcap PreemptMode=requeue GraceTime=120 "
            "PreemptExemptTime=00:05:00\n"
            "change qos 'vision': Preempt=language-user-overcap,overcap,vision-user-overcap\n"
            "add qos 'language': Priority=40 Preempt=language-user-overcap,overcap,vision-user-overcap "
            "GrpTRES=cpu=20,gres/gpu=4\n"
            "add account 'language-lab': Parent=root Fairshare=2\n"
            "change account 'language': Parent=language-lab Fairshare=1 GrpTRES=cpu=20,gres/gpu=4 "
            "QOS=language,language-user-overcap DefaultQOS=language\n"
            "add account 'language-overcap': Parent=language-lab Fairshare=1 QOS=overcap DefaultQOS=overcap\n"
            "add to account 'language-overcap': carol, root\n"
            "move job '7' to account 'language-overcap'\n"
            "move job '8_[0-4]' to account 'language-overcap'\n");
  EXPECT_EQ(
      difference.notes.front(),
      "1 running job of account 'language' belongs into 'language-overcap' and counts against the cap until "
      "then: what is preempted waits for the next apply, which moves it");
}

TEST(SlurmPolicyDifference, AQosLosesItsCapAfterItsAccountHasOne) {
  const auto with = [](const std::string& counts) {
    return StrCat("extra: {preempted_by: debug, counts: ", counts, "}\n  overcap: {");
  };
  LivePolicy live = LiveAfter(Plan("overcap: {", with("yes")));
  for (PlannedAccount& account : live.accounts) {
    if (account.name == "vision") account.cap.clear();  // as by an administrator
  }
  EXPECT_EQ(Steps(Compare("overcap: {", with("yields"), live)),
            "change account 'vision': GrpTRES=gres/gpu=4,gres/gpu:a40=3\n"
            "change qos 'vision-extra': Preempt=overcap GrpTRES=gres/gpu=-1,gres/gpu:a40=-1 "
            "MaxTRESPerUser=cpu=-1,gres/gpu=-1 MaxJobsPerUser=-1\n"
            "change qos 'language-extra': Preempt=overcap GrpTRES=cpu=-1,gres/gpu=-1\n");
}

TEST(SlurmPolicyDifference, JobsAreReadWithoutTheLimitOfAnArray) {
  const auto jobs = Must(ParsePolicyJobs(Recorded("policy-jobs.txt")));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].id, "2");
  EXPECT_FALSE(jobs[0].pending);
  EXPECT_EQ(jobs[1].id, "1_[0-9]");
  EXPECT_EQ(jobs[1].account, "vision");
  EXPECT_TRUE(jobs[1].pending);
  EXPECT_FALSE(ParsePolicyJobs("2|vision\n"));
}

TEST(SlurmPolicyDifference, LinesThatSlurmConfLacksArePrintedWithTheReason) {
  LivePolicy live = Live();
  EXPECT_EQ(Settings(Compare("debug: {gpus_per_user: 2,", "debug: {max_time: 1h, gpus_per_user: 2,", live)),
            "partition 'debug' has MaxTime=04:00:00, DefaultTime=04:00:00 | "
            "PartitionName=debug Nodes=n[1-2] Default=NO PriorityTier=40 \n");
  live.config.values["PreemptType"] = "preempt/none";
  live.config.values["SlurmctldParameters"] = "enable_configless";
  live.config.values["AccountingStorageEnforce"] = "none";
  live.config.values["GresTypes"] = "(null)";
  live.partitions.erase("overcap");
  live.nodes["n2"] = {{"a40", 2}};
  const PolicyDifference difference = Compare("", "", live);
  EXPECT_EQ(Settings(difference),
            "GresTypes is not set | GresTypes=gpu\n"
            "AccountingStorageEnforce lacks associations,limits,qos | "
            "AccountingStorageEnforce=associations,limits,qos\n"
            "PreemptType is preempt/none | PreemptType=preempt/qos\n"
            "SlurmctldParameters lacks preempt_send_user_signal | "
            "SlurmctldParameters=enable_configless,preempt_send_user_sign\n"
            "node 'n2' has GPUs a40:2; the policy says a40:4 | \n"
            "there is no partition 'overcap' | "
            "PartitionName=overcap Nodes=n[1-2] Default=NO PriorityTier=0\n");
  EXPECT_EQ(difference.then, "restart slurmctld");
  EXPECT_FALSE(difference.blocked);
}

TEST(SlurmPolicyDifference, NodesThatSlurmConfLacksBlockEveryStep) {
  LivePolicy live = Live();
  live.nodes.erase("n2");
  const PolicyDifference difference = Compare("", "", live);
  ASSERT_TRUE(difference.blocked);
  EXPECT_EQ(difference.blocked->message, "slurm.conf has no node n2: nothing was changed");
}

TEST(SlurmPolicyDifference, TheDefaultAccountOfAMemberWhoLeavesIsRemovedLast) {
  LivePolicy live = Live();
  const std::string removals =
      "remove from account 'language-overcap': carol\nremove from account 'language': carol\n";
  EXPECT_EQ(Steps(Compare("members: root carol", "members: root", live)), removals);
  live.accounts.push_back({.name = "guests", .parent = "root", .users = {"carol"}});
  EXPECT_EQ(Steps(Compare("members: root carol", "members: root", live)),
            "user 'carol' has the default account 'guests'\n" + removals);
}

TEST(SlurmPolicyDifference, MaintenanceThatIsOverIsLeftOut) {
  LivePolicy live = Live();
  live.reservations.clear();
  EXPECT_NE(Steps(Compare("", "", live)), "");
  const Policy policy = Must(ParsePolicy(Recorded("policy.yaml"), "policy.yaml"));
  EXPECT_EQ(Steps(CompareSlurmPolicy(Must(PlanSlurmPolicy(policy)), live, INT64_MAX)), "");
}

TEST(SlurmPolicyDifference, AnEmptyClusterGetsEverythingInAnOrderThatWorks) {
  LivePolicy nothing;
  nothing.config.values["ClusterName"] = "lab";
  std::string steps = Steps(Compare("", "", nothing));
  EXPECT_LT(steps.find("add qos 'overcap'"), steps.find("add qos 'vision'"));
  EXPECT_LT(steps.find("add qos 'vision'"), steps.find("add account 'vision'"));
  EXPECT_LT(steps.find("add account 'vision-lab'"), steps.find("add account 'vision'"));
  EXPECT_LT(steps.find("add account 'vision'"), steps.find("add to account 'vision'"));
  EXPECT_LT(steps.find("add to account 'vision'"), steps.find("admins of account 'vision'"));
}

TEST(SlurmPolicyDifference, TextsThatAreCutOffAreRefused) {
  EXPECT_FALSE(ParsePolicyQos("vision|40|over"));
  EXPECT_FALSE(ParsePolicyQos("vision|40\n"));
  EXPECT_FALSE(ParsePolicyAssociations("lab|x\n"));
  EXPECT_FALSE(ParsePartitionFields("PartitionName=debug Default=YES"));
  EXPECT_FALSE(ParsePartitionFields("slurm_load_partitions: error\n"));
  EXPECT_TRUE(ParseReservations("No reservations in the system\n")->empty());
}

TEST(SlurmPolicyDifference, AnswersOfChangesSayWhatWentWrong) {
  const PolicyStep step{"add qos 'x'", {"sacctmgr", "add", "qos", "x"}};
  EXPECT_TRUE(ReadPolicyAnswer(step, {{0, 0}, " Adding QOS(s)\n  x\n", ""}, "sky"));
  EXPECT_TRUE(ReadPolicyAnswer(step, {{1, 0}, " Nothing new added.\n", ""}, "sky"));
  const auto denied = ReadPolicyAnswer(step,
                                       {{1, 0},
                                        "",
                                        "sacctmgr: error: Your user doesn't have privilege to "
                                        "perform this action\n"},
                                       "sky");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ErrorCode::kDenied);
  EXPECT_EQ(denied.error().message.find('\n'), std::string::npos);
  const auto busy = ReadPolicyAnswer(
      step, {{1, 0}, " Error with request: Job(s) active, cancel job(s) before remove\n", ""}, "sky");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kConflict);
}

TEST(SlurmPolicyDifference, QosThatTheControllerDoesNotKnowYetAreFound) {
  const std::string text = "QOS Records\n\nQOS=vision(7)\n    UsageRaw=0\nQOS=part-debug(8)\n";
  const std::vector<PlannedQos> wanted = {{.name = "vision"}, {.name = "part-debug"}, {.name = "vis"}};
  EXPECT_EQ(UnknownQos(text, wanted), std::vector<std::string>{"vis"});
}

}  // namespace
}  // namespace overcap
