// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/session_command.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

TEST(SessionCommand, AStepBesideAJobSharesWhatTheJobHas) {
  AttachCommand attach;
  attach.slurm_id = 12;
  attach.command = {"/opt/overcap", "enter", "--", "a b"};
  EXPECT_EQ(ShellJoin(SrunIntoJob(attach)),
            "srun --jobid=12 --overlap --nodes=1 --ntasks=1 --quiet --mpi=none --chdir=/ --export=ALL "
            "/opt/overcap enter -- 'a b'");
  attach.node = "n2", attach.terminal = true;
  EXPECT_NE(ShellJoin(SrunIntoJob(attach)).find("--nodelist=n2 --pty /opt/overcap"), std::string::npos);
  attach.terminal = false, attach.stream = true;
  EXPECT_NE(ShellJoin(SrunIntoJob(attach)).find("--nodelist=n2 --unbuffered /opt/overcap"),
            std::string::npos);
}

TEST(SessionCommand, OnlyWhatTheExitStatusTellsIsChatter) {
  EXPECT_TRUE(IsSrunChatter("srun: error: n1: task 0: Exited with exit code 3"));
  EXPECT_TRUE(IsSrunChatter("srun: Force Terminated StepId=5.2"));
  EXPECT_FALSE(IsSrunChatter("srun: error: Unable to create step for job 5: Invalid gres specification"));
  EXPECT_FALSE(IsSrunChatter("n1: task 0: Exited with exit code 3"));
}

TEST(SessionCommand, ASessionAsksForWhatASubmitWould) {
  JobSpec spec;
  spec.id = "ann_1_00000001";
  spec.name = "shell";
  spec.resources.gpus = 2, spec.resources.gpu_type = "a40", spec.resources.cpus = 6;
  spec.resources.mem_bytes = (int64_t{1} << 30) + 1, spec.resources.time_seconds = 4 * 3600;
  spec.placement.node = "n3";
  SbatchSettings settings;
  settings.partitions = {"short", "user-overcap"};
  settings.account = "lab-a", settings.qos = "high";
  const auto argv = SrunSession(spec, settings, {"/opt/overcap", "enter", "--login"}, true);
  ASSERT_TRUE(argv) << argv.error().message;
  EXPECT_EQ(ShellJoin(*argv),
            "srun --comment=overcap-session:ann_1_00000001 --quiet --overlap --nodes=1 --ntasks=1 --mpi=none "
            "--export=ALL --job-name=shell --partition=short,user-overcap --account=lab-a --qos=high "
            "--nodelist=n3 --cpus-per-task=6 --mem=1025M --time=04:00:00 --gpus-per-node=a40:2 --pty "
            "/opt/overcap enter --login");
}

TEST(SessionCommand, ANameThatSlurmCannotHaveIsRefused) {
  JobSpec spec;
  spec.placement.node = "n1 n2";
  EXPECT_EQ(SrunSession(spec, {}, {"/x"}, false).error().code, ErrorCode::kUsage);
  spec.placement.node.clear();
  SbatchSettings settings;
  settings.extra_args = {"--array=1-3"};
  EXPECT_EQ(SrunSession(spec, settings, {"/x"}, false).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
