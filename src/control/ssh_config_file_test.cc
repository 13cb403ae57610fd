// SPDX-License-Identifier: Apache-2.0
#include "control/ssh_config_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <thread>

namespace overcap {
namespace {

namespace fs = std::filesystem;

class SshConfigFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_ssh_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    home_ = folder;
  }
  void TearDown() override { fs::remove_all(home_); }

  std::string Text(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(home_ + "/" + name).rdbuf();
    return text.str();
  }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(home_ + "/" + name).parent_path());
    std::ofstream(home_ + "/" + name) << text;
  }
  static SshHost Host(const std::string& name) {
    SshHost host;
    host.name = name, host.job = "job-" + name, host.attempt = 1, host.node = "n1", host.user = "ann";
    host.jump = "login";
    return host;
  }

  std::string home_;
};

TEST_F(SshConfigFileTest, HostsComeAndGoAndTheFileWithThem) {
  ASSERT_TRUE(WriteSshHost(home_, Host("a")));
  ASSERT_TRUE(WriteSshHost(home_, Host("b")));
  struct stat info {};
  ASSERT_EQ(stat(OwnSshConfig(home_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(ReadSshEntries(home_).size(), 2U);
  ASSERT_TRUE(RemoveSshHosts(home_, [](const SshEntry& entry) { return entry.name == "a"; }));
  EXPECT_EQ(ReadSshEntries(home_), (std::vector<SshEntry>{{"b", "job-b", 1, "n1"}}));
  ASSERT_TRUE(RemoveSshHosts(home_, [](const SshEntry&) { return true; }));
  EXPECT_FALSE(fs::exists(OwnSshConfig(home_)));
}

TEST_F(SshConfigFileTest, ThoseWhoWriteAtTheSameTimeLoseNothing) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([this, i] { EXPECT_TRUE(WriteSshHost(home_, Host("h" + std::to_string(i)))); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ReadSshEntries(home_).size(), 8U);
}

TEST_F(SshConfigFileTest, TheIncludeIsPutInOnceBesideACopy) {
  Write(".ssh/config", "Host x\n");
  chmod((home_ + "/.ssh/config").c_str(), 0640);
  const auto first = InstallSshInclude(home_);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->changed);
  EXPECT_EQ(Text(".ssh/config.before-overcap"), "Host x\n");
  EXPECT_TRUE(SshIncludeInstalled(home_));
  struct stat info {};
  ASSERT_EQ(stat((home_ + "/.ssh/config").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
  EXPECT_FALSE(InstallSshInclude(home_)->changed);
  Write(".ssh/config", "Host y\n");
  EXPECT_EQ(InstallSshInclude(home_)->backup, home_ + "/.ssh/config.before-overcap-2");
}

TEST_F(SshConfigFileTest, ALinkStaysALink) {
  Write("dotfiles/ssh", "Host x");
  fs::create_directory(home_ + "/.ssh");
  fs::create_symlink("../dotfiles/ssh", home_ + "/.ssh/config");
  ASSERT_TRUE(InstallSshInclude(home_));
  EXPECT_TRUE(fs::is_symlink(home_ + "/.ssh/config"));
  EXPECT_TRUE(Text("dotfiles/ssh").ends_with("\nHost x"));
}

TEST_F(SshConfigFileTest, WithoutAConfigurationOneIsMade) {
  const auto install = InstallSshInclude(home_);
  ASSERT_TRUE(install);
  EXPECT_EQ(install->backup, "");
  EXPECT_NE(Text(".ssh/config").find("Include ~/.ssh/overcap/config\n"), std::string::npos);
}

TEST_F(SshConfigFileTest, WhatCannotBeReadIsLeftAlone) {
  fs::create_directories(home_ + "/.ssh/config");  // a folder: not even root can read it
  EXPECT_FALSE(InstallSshInclude(home_));
  EXPECT_TRUE(fs::is_directory(home_ + "/.ssh/config"));
  fs::remove(home_ + "/.ssh/config");
  fs::create_symlink("nowhere", home_ + "/.ssh/config");
  EXPECT_FALSE(InstallSshInclude(home_));
  EXPECT_FALSE(fs::exists(home_ + "/.ssh/nowhere"));
}

}  // namespace
}  // namespace overcap
