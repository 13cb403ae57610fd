// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_check.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "base/text.h"
#include "clusters/slurm/check_folder.h"

namespace overcap {
namespace {

using Health = ClusterFinding::Health;

SlurmConfig Recorded() {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/scontrol-show-config.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  auto config = ParseConfig(text.str());
  EXPECT_TRUE(config);
  return config ? *config : SlurmConfig{};
}

TEST(SlurmConfigText, ValuesAndTheirWordsAreFound) {
  const SlurmConfig config = Recorded();
  EXPECT_EQ(config.Get("ClusterName"), "lab");
  EXPECT_EQ(config.Get("SLURM_VERSION"), "22.05.8");
  EXPECT_EQ(config.Get("AuthAltTypes"), "");
  EXPECT_EQ(config.Get("no such"), "");
  EXPECT_EQ(config.Word("AuthInfo", "cred_expire"), "5");
  EXPECT_TRUE(config.HasWord("SlurmctldParameters", "Preempt_Send_User_Signal"));
  EXPECT_FALSE(config.HasWord("SlurmctldParameters", "preempt"));
  EXPECT_FALSE(ParseConfig("error\n"));
}

TEST(SlurmCheck, GoodPreemptionSettingsAreFine) {
  const auto findings = CheckSlurmConfig(Recorded());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].health, Health::kFine);
}

TEST(SlurmCheck, WhatHurtsPreemptedJobsIsTold) {
  SlurmConfig config = Recorded();
  config.values["SlurmctldParameters"] = "(null)";
  config.values["AuthInfo"] = "socket=/x";
  config.values["JobRequeue"] = "0";
  const auto findings = CheckSlurmConfig(config);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].health, Health::kWorse);
  EXPECT_EQ(findings[1].text, "a preempted job waits 121 s before it can start again");
  config.values["PreemptType"] = "preempt/none";
  EXPECT_EQ(CheckSlurmConfig(config)[0].text, "jobs are not preempted here");
}

TEST(SlurmCheck, HiddenJobsAreTold) {
  SlurmConfig config = Recorded();
  config.values["PrivateData"] = "accounts,jobs";
  EXPECT_NE(CheckSlurmConfig(config)[0].text.find("PrivateData=jobs"), std::string::npos);
}

TEST(SlurmCheck, AClockThatIsOffIsTold) {
  constexpr int64_t kNow = 1'794'735'703'000'000;
  const std::string text = "Configuration data as of 1794735703\nX = y\n";
  EXPECT_EQ(CheckSlurmClock(text, kNow, kNow + 500'000)[0].health, Health::kFine);
  EXPECT_EQ(CheckSlurmClock(text, kNow + 999'999, kNow + 1'500'000)[0].health, Health::kFine);
  EXPECT_EQ(CheckSlurmClock(text, kNow + 91'000'000, kNow + 91'000'000)[0].text,
            "the controller's clock is 1m30s behind this host's");
  EXPECT_EQ(CheckSlurmClock(text, kNow - 60'000'000, kNow - 60'000'000)[0].health, Health::kWorse);
  EXPECT_TRUE(CheckSlurmClock("something else", kNow, kNow).empty());
}

TEST(SlurmCheck, SettingsThatTheClusterDoesNotKnowAreBroken) {
  ClusterPicture picture;
  picture.partitions = {{.name = "short"}, {.name = "long"}};
  picture.labs = {{.name = "vision", .users = {"alice"}}, {.name = "speech", .users = {"bob"}}};
  picture.qos = {{.name = "normal"}};
  SchedulerSettings settings;
  settings.partitions = {"short", "shrt"};
  settings.account = "speech";
  settings.qos = "fast";
  const auto findings = CheckSlurmSettings(settings, picture, "alice");
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].text, "there is no partition 'shrt'");
  EXPECT_EQ(findings[1].text, "you are not in account 'speech'");
  EXPECT_EQ(findings[1].hint, "yours are: vision");
  EXPECT_EQ(findings[2].text, "there is no QOS 'fast'");
  EXPECT_EQ(CheckSlurmSettings({}, picture, "alice")[0].health, Health::kFine);
}

TEST(CheckFolder, SharedFileSystemsAreToldFromThoseOfOneMachine) {
  EXPECT_EQ(FileSystemName(0x6969), "nfs");
  EXPECT_FALSE(IsOfThisMachineAlone("nfs"));
  EXPECT_TRUE(IsOfThisMachineAlone(FileSystemName(0xEF53)));
  EXPECT_EQ(FileSystemName(1), "");
  EXPECT_FALSE(IsOfThisMachineAlone(""));
}

TEST(CheckFolder, AFolderThatCannotBeWrittenIsBroken) {
  const ClusterFinding finding = CheckJobFolder("/proc/no/such");
  EXPECT_EQ(finding.health, Health::kBroken);
  EXPECT_NE(finding.text.find("'/proc/no/such'"), std::string::npos);
  EXPECT_NE(CheckJobFolder(testing::TempDir()).health, Health::kBroken);
}

TEST(CheckFolder, AFolderOfAFreshHomeIsMade) {
  std::string home = StrCat(testing::TempDir(), "home-XXXXXX");
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  EXPECT_NE(CheckJobFolder(home + "/.local/state/overcap").health, Health::kBroken);
  std::filesystem::remove_all(home);
}

}  // namespace
}  // namespace overcap
