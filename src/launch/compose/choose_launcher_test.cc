// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/choose_launcher.h"

#include <gtest/gtest.h>

#include "launch/detect/testing/fake_programs.h"

namespace overcap {
namespace {

constexpr char kPals[] = "mpiexec version 1.8.0 revision 1\n";
constexpr char kOpenMpi[] = "mpirun (Open MPI) 4.1.4\n";

std::string Choice(const ChoiceInputs& inputs, FakePrograms programs) {
  const auto launcher = ChooseLauncher(inputs, programs);
  if (launcher)
    return StrCat(FlavourName(launcher->flavour), " '", launcher->program, "' ", launcher->reason);
  return StrCat(ErrorCodeName(launcher.error().code), ": ", launcher.error().message, " | ",
                launcher.error().hint);
}

TEST(ChooseLauncherTest, OneMachineNeedsNoLauncherAndSeveralGetSsh) {
  EXPECT_EQ(Choice({}, {}), "local '' one host, this one");
  EXPECT_EQ(Choice({.hosts = 3, .this_host_only = false}, {}), "ssh '' 3 hosts");
  EXPECT_EQ(Choice({.this_host_only = false}, {}), "ssh '' another host");
}

TEST(ChooseLauncherTest, ASlurmJobGoesThroughSrun) {
  FakePrograms programs;
  programs.Answer("srun", "slurm-wlm 22.05.8\n");
  const ChoiceInputs job{
      .scheduler = SchedulerKind::kSlurm, .in_job = true, .hosts = 2, .this_host_only = false};
  EXPECT_EQ(Choice(job, programs), "srun 'srun' Slurm job; 'srun --version' says 'slurm-wlm 22.05.8'");
  EXPECT_EQ(Choice(job, {}), "ssh '' Slurm job, but srun is not installed here; 2 hosts");
  ChoiceInputs login = job;
  login.in_job = false;
  login.hosts = 1;
  login.this_host_only = true;
  EXPECT_EQ(Choice(login, programs), "local '' one host, this one");
}

TEST(ChooseLauncherTest, APbsJobGoesThroughTheMpiexecThatIsThere) {
  const ChoiceInputs job{
      .scheduler = SchedulerKind::kPbs, .in_job = true, .hosts = 2, .this_host_only = false};
  FakePrograms pals;
  pals.Answer("mpiexec", kPals);
  EXPECT_EQ(Choice(job, pals),
            "pals 'mpiexec' PBS job; 'mpiexec --version' says 'mpiexec version 1.8.0 revision 1'");
  FakePrograms other;
  other.Answer("mpiexec", "who knows\n");
  other.Answer("mpirun", kOpenMpi);
  EXPECT_EQ(Choice(job, other),
            "openmpi 'mpirun' PBS job; 'mpirun --version' says 'mpirun (Open MPI) 4.1.4'");
  EXPECT_EQ(Choice(job, {}), "ssh '' PBS job, but launcher 'mpiexec' is not installed here; 2 hosts");
}

TEST(ChooseLauncherTest, WhatIsAskedForWins) {
  FakePrograms programs;
  programs.Answer("srun", "slurm 23.11.4\n");
  programs.Answer("/opt/x/mpirun", kOpenMpi);
  ChoiceInputs job{.scheduler = SchedulerKind::kSlurm, .in_job = true};
  job.asked = "local";
  EXPECT_EQ(Choice(job, programs), "local '' asked for");
  job.asked = "ssh";
  EXPECT_EQ(Choice(job, programs), "ssh '' asked for");
}

TEST(ChooseLauncherTest, TheSiteFileNamesTheProgramForItsJobs) {
  FakePrograms programs;
  programs.Answer("/opt/cray/pals/bin/mpiexec --version", kPals);
  programs.Answer("mpirun", kOpenMpi);
  programs.Install("/opt/cray/pals/bin/mpiexec");
  ChoiceInputs job{.scheduler = SchedulerKind::kPbs,
                   .in_job = true,
                   .hosts = 2,
                   .this_host_only = false,
                   .site_launcher = "mpiexec",
                   .site_program = "/opt/cray/pals/bin/mpiexec"};
  EXPECT_EQ(
      Choice(job, programs),
      "pals '/opt/cray/pals/bin/mpiexec' site file; '/opt/cray/pals/bin/mpiexec --version' says 'mpiexec "
      "version 1.8.0 revision 1'");
  job.asked = "mpirun";
  EXPECT_EQ(Choice(job, programs),
            "openmpi 'mpirun' asked for; 'mpirun --version' says 'mpirun (Open MPI) 4.1.4'");
  job.asked = "auto";
  job.in_job = false;
  EXPECT_EQ(Choice(job, programs), "ssh '' 2 hosts");
}

TEST(ChooseLauncherTest, WhatCannotBeHadIsSaid) {
  EXPECT_EQ(Choice({.asked = "foo"}, {}),
            "usage: unknown launcher 'foo' | one of: auto, srun, mpiexec, mpirun, ssh, local");
  EXPECT_EQ(Choice({.asked = "srum"}, {}), "usage: unknown launcher 'srum' | did you mean 'srun'?");
  EXPECT_EQ(Choice({.asked = "mpirun"}, {}),
            "usage: launcher 'mpirun' is not installed here | '--launcher ssh' and '--launcher local' need "
            "no other "
            "program");
  EXPECT_EQ(Choice({.asked = "local", .hosts = 2, .this_host_only = false}, {}),
            "usage: launcher 'local' starts ranks on this machine only, but 2 hosts are to be used | leave "
            "--launcher "
            "out, or add '--nnodes 1'");
  FakePrograms strange;
  strange.Answer("mpiexec", "who knows\n");
  EXPECT_EQ(Choice({.asked = "mpiexec"}, strange),
            "usage: 'mpiexec --version' says 'who knows': no launcher that Overcap knows | it knows srun, "
            "and mpiexec "
            "of PALS, MPICH, Intel MPI and Open MPI");
  FakePrograms slow;
  slow.Hang("mpiexec");
  EXPECT_EQ(Choice({.asked = "mpiexec"}, slow), "unavailable: 'mpiexec' did not end in time | ");
}

}  // namespace
}  // namespace overcap
