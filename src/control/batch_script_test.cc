// SPDX-License-Identifier: Apache-2.0
#include "control/batch_script.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

// The options as sbatch would take them, or the message of the refusal.
std::string Options(std::string_view directives) {
  const auto script = ParseBatchScript(StrCat("#!/bin/bash\n", directives, "echo\n"), "job.sh");
  if (!script) return script.error().message;
  std::vector<std::string> texts;
  for (const BatchOption& option : script->options) texts.push_back(option.Text());
  return Join(texts, " ; ");
}

TEST(BatchScript, OptionsAreReadInEveryFormThatSbatchKnows) {
  EXPECT_EQ(Options("#SBATCH -p short\n#SBATCH --gres=gpu:2\n"), "--partition=short ; --gres=gpu:2");
  EXPECT_EQ(Options("#SBATCH --partition short -t10 --mem  4G\n"),
            "--partition=short ; --time=10 ; --mem=4G");
  EXPECT_EQ(Options("#SBATCH\t-N2\n"), "--nodes=2");
  EXPECT_EQ(Options("#SBATCH --requeue -H --exclusive\n"), "--requeue ; --hold ; --exclusive");
  EXPECT_EQ(Options("#SBATCH --exclusive=user --nice=5 --nice\n"), "--exclusive=user ; --nice=5 ; --nice");
  EXPECT_EQ(Options("#SBATCH --part=a --ntasks-per-n=2\n"), "--partition=a ; --ntasks-per-node=2");
  EXPECT_EQ(Options("#SBATCH -HQJ name\n"), "--hold ; --quiet ; --job-name=name");
  EXPECT_EQ(Options("#SBATCH --brand-new=1 --newer 2 --newest --mem=1\n"),
            "--brand-new=1 ; --newer=2 ; --newest ; --mem=1");
  EXPECT_EQ(Options("#SBATCH --job-name\n#SBATCH x\n"), "--job-name=x");
}

// As sbatch 22.05 does (`sbatch -vvv` tells).
TEST(BatchScript, WordsAreTakenApartAsSbatchDoes) {
  EXPECT_EQ(Options("#SBATCH --job-name=\"a b\"  # comment\n"), "--job-name=a b");
  EXPECT_EQ(Options("#SBATCH --qos 'x y' -A z\n"), "--qos=x y ; --account=z");
  EXPECT_EQ(Options("#SBATCH --hint=\"nomult\"ithread --wckey=a\\#b --prefer=a\\\\b \"--qos=a#b\"\n"),
            "--hint=nomultithread ; --wckey=a#b ; --prefer=a\\b ; --qos=a#b");
  EXPECT_EQ(Options("#SBATCH --begin=now+1hour#x --qos=y\n"), "--begin=now+1hour");
  EXPECT_EQ(Options("#SBATCH --wckey=\"quo'te\\\"d\"\n"), "--wckey=quo'te\"d");
  EXPECT_EQ(Options("#SBATCH -t10 '' -A x\n"), "--time=10");
}

TEST(BatchScript, DirectivesEndAtTheFirstCommand) {
  EXPECT_EQ(Options("# a comment\n\n  # another\n#SBATCH -p a\n #SBATCH -p b\n##SBATCH -p c\n"),
            "--partition=a");
  EXPECT_EQ(Options("#SBATCH -p a\nset -e\n#SBATCH -p b\n"), "--partition=a");
}

TEST(BatchScript, WhatSbatchWouldRefuseIsRefusedWithItsLine) {
  EXPECT_EQ(Options("#SBATCH -p a b\n"), "job.sh:2: 'b' is no option of sbatch");
  EXPECT_EQ(Options("\n#SBATCH --mail-user='it is\n"), "job.sh:3: a ' is not closed");
  EXPECT_EQ(Options("#SBATCH -p\n"), "job.sh:2: '--partition' has no value");
  EXPECT_EQ(Options("#SBATCH --requeue=yes\n"), "job.sh:2: '--requeue' takes no value");
  EXPECT_EQ(Options("#SBATCH -Z3\n"), "job.sh:2: '-Z3' is no option of sbatch");
  EXPECT_EQ(Options("#SBATCH hetjob\n"), "job.sh:2: jobs of several parts cannot be submitted by overcap");
  EXPECT_EQ(Options("#SBATCH --\n"), "job.sh:2: '--' is no option of sbatch");
}

TEST(BatchScript, TheInterpreterIsThatOfTheFirstLine) {
  const auto interpreter = [](std::string_view first) {
    const auto script = ParseBatchScript(StrCat(first, "\n#SBATCH -N1\n"), "job.sh");
    return script ? Join(script->interpreter, "|") : script.error().message;
  };
  EXPECT_EQ(interpreter("#!/bin/bash"), "/bin/bash");
  EXPECT_EQ(interpreter("#! /bin/bash -l -x "), "/bin/bash|-l -x");
  EXPECT_EQ(interpreter("#!/usr/bin/env python3"), "/usr/bin/env|python3");
  EXPECT_EQ(interpreter("#!bash"),
            "job.sh:1: behind '#!' there must be the path of an interpreter, like /bin/bash");
  EXPECT_EQ(interpreter("#!/bin/sh\r"), "script 'job.sh' has DOS line breaks");
  EXPECT_EQ(interpreter("echo"), "job.sh:1: a batch script begins with '#!' and its interpreter");
}

TEST(BatchScript, AScriptWithoutDirectivesIsAnOrdinaryCommand) {
  EXPECT_TRUE(IsBatchScript("#!/bin/sh\n#SBATCH -N1\n"));
  EXPECT_TRUE(IsBatchScript("#!/bin/sh\n#SBATCH"));
  EXPECT_FALSE(IsBatchScript("#!/bin/sh\necho\n#SBATCH -N1\n"));
  EXPECT_FALSE(IsBatchScript("#SBATCH -N1\n"));
  EXPECT_FALSE(IsBatchScript("#!/bin/sh\n"));
  EXPECT_FALSE(IsBatchScript(""));
}

}  // namespace
}  // namespace overcap
