// SPDX-License-Identifier: Apache-2.0
#include "control/enter.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Words = std::vector<std::string>;

TEST(Enter, TakesItsWordsApart) {
  const auto options =
      ParseEnterOptions({"--job", "/j", "--attempt", "2", "--here", "A_,B", "--login", "--", "ls", "--ssh"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->job, "/j");
  EXPECT_EQ(options->attempt, 2);
  EXPECT_EQ(options->here, (Words{"A_", "B"}));
  EXPECT_TRUE(options->login);
  EXPECT_FALSE(options->ssh);
  EXPECT_EQ(options->command, (Words{"ls", "--ssh"}));
}

TEST(Enter, RefusesWhatItDoesNotKnow) {
  for (const Words& bad : {Words{"--job"}, Words{"--job", "/j"}, Words{"--attempt", "x"},
                           Words{"--attempt", "0"}, Words{"--what", "x"}, Words{"ls"}}) {
    EXPECT_EQ(ParseEnterOptions(bad).error().code, ErrorCode::kUsage);
  }
}

TEST(Enter, WhatTheNodeSetsCountsMoreThanWhatTheJobWasGiven) {
  const Words job = {"A=1", "SLURM_STEP_ID=0", "SLURM_OLD=1", "CUDA_VISIBLE_DEVICES=3", "PATH=/job"};
  const Words here = {"SLURM_STEP_ID=7", "CUDA_VISIBLE_DEVICES=0,1", "PATH=/node", "SECRET=x"};
  EXPECT_EQ(EnterVariables(job, here, {"SLURM_", "CUDA_VISIBLE_DEVICES"}),
            (Words{"A=1", "CUDA_VISIBLE_DEVICES=0,1", "PATH=/job", "SLURM_STEP_ID=7"}));
  // A name of which the node says nothing stays as the job has it.
  EXPECT_EQ(EnterVariables({"CUDA_VISIBLE_DEVICES="}, {}, {"CUDA_VISIBLE_DEVICES"}),
            (Words{"CUDA_VISIBLE_DEVICES="}));
}

TEST(Enter, KnowsLinesThatOnlyCarryFiles) {
  for (const char* line : {"/usr/lib/openssh/sftp-server", "internal-sftp -l INFO", "scp -t .",
                           "rsync --server -vlogDtpre.iLsfxC . x"}) {
    EXPECT_TRUE(CarriesFiles(line)) << line;
  }
  for (const char* line : {"", "bash -l", "python scp.py", "scp-now", "echo scp"})
    EXPECT_FALSE(CarriesFiles(line)) << line;
}

TEST(Enter, TheConnectionOfSshIsTheOneThatCounts) {
  EXPECT_EQ(SshVariables({"A=1", "SSH_TTY=/old", "TERM=dumb", "LANG=C"},
                         {"SSH_CONNECTION=x", "TERM=xterm", "LANG=de", "HOME=/sshd", "PATH=/sshd"}),
            (Words{"A=1", "LANG=de", "SSH_CONNECTION=x", "TERM=xterm"}));
}

}  // namespace
}  // namespace overcap
