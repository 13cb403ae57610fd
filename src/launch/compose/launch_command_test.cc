// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/launch_command.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

std::string Sample(const std::string& name) {
  return PosixFiles().Read(std::string(OVERCAP_TEST_DATA) + "/" + name).value();
}

std::string Kind(const std::string& program, std::string_view text) {
  const auto launcher = LauncherOf(program, text);
  return launcher ? StrCat(FlavourName(launcher->flavour), " ", launcher->major_version)
                  : launcher.error().message;
}

TEST(LauncherVersionTest, InstalledProgramsAreKnownByTheirRealAnswers) {
  EXPECT_EQ(Kind("mpirun", Sample("openmpi-4.1.4/mpirun-version.txt")), "openmpi 4");
  EXPECT_EQ(Kind("mpiexec", Sample("openmpi-4.1.4/mpiexec-version.txt")), "openmpi 4");
  EXPECT_EQ(Kind("mpirun.openmpi", Sample("openmpi-4.1.4/mpirun.openmpi-version.txt")), "openmpi 4");
  EXPECT_EQ(Kind("mpiexec", Sample("mpich-4.0.2/mpiexec-version.txt")), "hydra 4");
  EXPECT_EQ(Kind("srun", "slurm-wlm 22.05.8\n"), "srun 22");
  EXPECT_EQ(Kind("/opt/slurm/bin/srun", "srun: fatal: Could not establish a configuration source\n"),
            "srun 0");
}

// As their makers document them; none of these could be tried.
TEST(LauncherVersionTest, OthersAreKnownByWhatIsWrittenAboutThem) {
  EXPECT_EQ(Kind("mpiexec", "mpiexec version 1.8.0 revision 0123abcd\n"), "pals 1");
  EXPECT_EQ(
      Kind("mpirun", "mpirun (Open MPI) 5.0.3\n\nReport bugs to https://www.open-mpi.org/community/help/\n"),
      "openmpi 5");
  EXPECT_EQ(Kind("prterun", "prterun (PRRTE) 3.0.2\n"), "openmpi 5");
  EXPECT_EQ(
      Kind("mpiexec", "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005\nCopyright 2003"),
      "hydra 2021");
  EXPECT_EQ(Kind("mpiexec", "\nHYDRA build details:\n    Version:      3.0.4\n"), "hydra 3");
  EXPECT_EQ(LauncherOf("mpiexec", "\nHYDRA build details:\n    Version:      3.0.4\n    CC: gcc\n")->reason,
            "'mpiexec --version' says 'HYDRA build details: Version:      3.0.4'");
}

TEST(LauncherVersionTest, AnythingElseIsNone) {
  EXPECT_EQ(Kind("mpiexec", "Microsoft MPI Startup Program\n"),
            "'mpiexec --version' says 'Microsoft MPI Startup Program': no launcher that Overcap knows");
  EXPECT_EQ(LauncherOf("mpiexec", "").error().code, ErrorCode::kNotFound);
}

TEST(LauncherVersionTest, TheReasonIsTheProgramsOwnWord) {
  EXPECT_EQ(LauncherOf("mpiexec", "mpiexec version 1.8.0\n")->reason,
            "'mpiexec --version' says 'mpiexec version 1.8.0'");
}

// ---- command lines

RankPlan Plan(const std::vector<int>& ranks, int gpus = 0) {
  RankPlan plan;
  for (const int count : ranks) {
    plan.hosts.push_back({StrCat("n", plan.hosts.size() + 1), plan.world_size, count, gpus});
    plan.world_size += count;
  }
  return plan;
}

LaunchRequest Request(Flavour flavour, RankPlan plan, int major = 4) {
  LaunchRequest request;
  const char* program = flavour == Flavour::kSrun ? "srun" : "mpiexec";
  request.launcher = {flavour, program, major, ""};
  request.plan = std::move(plan);
  request.rank_command = {"/opt/overcap", "rank", "--", "python", "train.py"};
  return request;
}

constexpr char kTail[] = " /opt/overcap rank -- python train.py";

std::string Line(const LaunchRequest& request) {
  const auto command = ComposeLaunch(request);
  if (!command) return command.error().message;
  std::string line = Join(command->argv, " ");
  if (line.ends_with(kTail)) line.resize(line.size() - std::string_view(kTail).size());
  return line;
}

TEST(ComposeSrunTest, OneHostNeedsNoPlaces) {
  EXPECT_EQ(Line(Request(Flavour::kSrun, Plan({4}))),
            "srun -N 1 -n 4 --overlap --overcommit --kill-on-bad-exit=1 --export=ALL --unbuffered");
}

TEST(ComposeSrunTest, ChosenHostsArePlacedByName) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({4}));
  request.hosts_chosen = true;
  EXPECT_EQ(
      Line(request),
      "srun -N 1 -n 4 --nodelist=n1 --overlap --overcommit --kill-on-bad-exit=1 --export=ALL --unbuffered");
}

TEST(ComposeSrunTest, SeveralHostsGetTheirRanksInThePlansOrder) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({1, 2}));
  std::swap(request.plan.hosts[0].name, request.plan.hosts[1].name);
  EXPECT_EQ(Line(request),
            "srun -n 3 --distribution=arbitrary --nodelist=n2,n1,n1 --overlap --overcommit "
            "--kill-on-bad-exit=1 --export=ALL --unbuffered");
}

TEST(ComposeSrunTest, ManyRanksGoIntoAFile) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({800, 1}));
  request.hostfile = "/logs/hostfile";
  const auto command = ComposeLaunch(request).value();
  EXPECT_EQ(command.argv[4], "--nodelist=/logs/hostfile");
  EXPECT_EQ(command.hostfile_text.substr(0, 6), "n1\nn1\n");
  EXPECT_EQ(command.hostfile_text.substr(command.hostfile_text.size() - 6), "n1\nn2\n");
}

TEST(ComposeSrunTest, GpusAreAskedForOnlyWhenSlurmGaveThem) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({4}, 4));
  EXPECT_EQ(Line(request).find("--gpus"), std::string::npos);
  request.gpus_from_scheduler = true;
  EXPECT_EQ(Line(request),
            "srun -N 1 -n 4 --gpus-per-node=4 --overlap --overcommit --kill-on-bad-exit=1 --export=ALL "
            "--unbuffered");
}

// A step that overlaps and asks for no GPUs is refused there; one that does not overlap gets all of them.
TEST(ComposeSrunTest, UnequalGpusAreLeftToSlurm) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({3, 1}, 3));
  request.plan.hosts[1].gpus = 1;
  request.gpus_from_scheduler = true;
  EXPECT_EQ(Line(request),
            "srun -n 4 --distribution=arbitrary --nodelist=n1,n1,n1,n2 --overcommit --kill-on-bad-exit=1 "
            "--export=ALL --unbuffered");
}

TEST(ComposeSrunTest, WhatTheJobAskedForIsNotAskedAgain) {
  const auto command = ComposeLaunch(Request(Flavour::kSrun, Plan({1}))).value();
  for (const char* name : {"SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND",
                           "SLURM_NTASKS_PER_NODE", "SLURM_HOSTFILE"})
    EXPECT_NE(std::find(command.unset.begin(), command.unset.end(), name), command.unset.end()) << name;
}

TEST(ComposeSrunTest, BindingAndTheUsersWordsComeLast) {
  LaunchRequest request = Request(Flavour::kSrun, Plan({2}));
  request.cpu_bind = "list:0:1";
  request.launcher_args = {"--mpi=pmix", "--label"};
  EXPECT_EQ(Line(request),
            "srun -N 1 -n 2 --overlap --overcommit --cpu-bind=map_cpu:0,1 --kill-on-bad-exit=1 --export=ALL "
            "--unbuffered --mpi=pmix --label");
}

TEST(ComposePalsTest, AuroraAndPolarisGetTheirWords) {
  LaunchRequest aurora = Request(Flavour::kPals, Plan({12, 12}, 12), 1);
  aurora.hostfile = "/logs/hostfile";
  aurora.cpu_bind = "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100";
  const auto command = ComposeLaunch(aurora).value();
  EXPECT_EQ(Line(aurora),
            "mpiexec --envall --np 24 --ppn 12 --hostfile /logs/hostfile --cpu-bind "
            "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100");
  EXPECT_EQ(command.hostfile_text, "n1\nn2\n");
  LaunchRequest polaris = Request(Flavour::kPals, Plan({4, 4}, 4), 1);
  polaris.cpu_bind = "depth:8";
  EXPECT_EQ(Line(polaris), "mpiexec --envall --np 8 --ppn 4 --hosts n1,n2 --cpu-bind depth --depth 8");
}

TEST(ComposePalsTest, OnlyTheLastHostMayHaveFewerRanks) {
  EXPECT_EQ(Line(Request(Flavour::kPals, Plan({4, 4, 2}))),
            "mpiexec --envall --np 10 --ppn 4 --hosts n1,n2,n3");
  const auto uneven = ComposeLaunch(Request(Flavour::kPals, Plan({3, 3, 2, 2})));
  ASSERT_FALSE(uneven);
  EXPECT_EQ(uneven.error().code, ErrorCode::kUsage);
  EXPECT_EQ(
      uneven.error().message,
      "'mpiexec' (PALS) cannot place 3x2,2x2 ranks on its hosts: each but the last needs the same number");
  EXPECT_EQ(uneven.error().hint, "--ppn 3 fills one host after the other");
  EXPECT_FALSE(ComposeLaunch(Request(Flavour::kPals, Plan({2, 4}))));
}

TEST(ComposeHydraTest, KnowsNeitherLineBufferNorCpuBind) {
  LaunchRequest request = Request(Flavour::kHydra, Plan({4, 4}));
  request.cpu_bind = "cores";
  EXPECT_EQ(Line(request), "mpiexec -n 8 -genvall -ppn 4 -hosts n1,n2 -bind-to core");
}

TEST(ComposeHydraTest, UnevenHostsAreToldTheirNumbers) {
  LaunchRequest request = Request(Flavour::kHydra, Plan({3, 2}));
  EXPECT_EQ(Line(request), "mpiexec -n 5 -genvall -hosts n1:3,n2:2");
  request.hostfile = "/logs/hostfile";
  EXPECT_EQ(Line(request), "mpiexec -n 5 -genvall -f /logs/hostfile");
  EXPECT_EQ(ComposeLaunch(request)->hostfile_text, "n1:3\nn2:2\n");
}

TEST(ComposeOpenMpiTest, PassesVariablesByName) {
  LaunchRequest request = Request(Flavour::kOpenMpi, Plan({4, 4}));
  request.exported = {"PATH", "LD_LIBRARY_PATH"};
  request.as_root = request.oversubscribe = true;
  EXPECT_EQ(Line(request),
            "mpiexec --np 8 --host n1:4,n2:4 --map-by ppr:4:node --rank-by slot --allow-run-as-root "
            "--oversubscribe "
            "-x PATH -x LD_LIBRARY_PATH -x OVERCAP_LAUNCH_PLAN -x OVERCAP_RUN -x OVERCAP_LAUNCH -x "
            "OVERCAP_LAUNCH_KEY");
}

TEST(ComposeOpenMpiTest, UnevenHostsHaveSlots) {
  LaunchRequest request = Request(Flavour::kOpenMpi, Plan({4, 2}));
  request.hostfile = "/logs/hostfile";
  EXPECT_EQ(Line(request),
            "mpiexec --np 6 --hostfile /logs/hostfile --map-by slot --rank-by slot -x OVERCAP_LAUNCH_PLAN -x "
            "OVERCAP_RUN -x OVERCAP_LAUNCH -x OVERCAP_LAUNCH_KEY");
  EXPECT_EQ(ComposeLaunch(request)->hostfile_text, "n1 slots=4\nn2 slots=2\n");
}

TEST(ComposeOpenMpiTest, VersionFiveHasOtherWords) {
  LaunchRequest request = Request(Flavour::kOpenMpi, Plan({4}), 5);
  request.oversubscribe = true;
  request.cpu_bind = "depth:2";
  EXPECT_EQ(
      Line(request),
      "mpiexec --np 4 --host n1:4 --map-by ppr:4:node:PE=2:OVERSUBSCRIBE --rank-by slot --bind-to "
      "core:overload-allowed -x OVERCAP_LAUNCH_PLAN -x OVERCAP_RUN -x OVERCAP_LAUNCH -x OVERCAP_LAUNCH_KEY");
}

TEST(ComposeOpenMpiTest, WhatIsOnlyShownNamesNoVariableThatOnlyALaunchSets) {
  LaunchRequest request = Request(Flavour::kOpenMpi, Plan({1}));
  request.linked = false;
  EXPECT_EQ(Line(request).find("OVERCAP_LAUNCH_KEY"), std::string::npos);
  EXPECT_NE(Line(request).find("-x OVERCAP_LAUNCH_PLAN"), std::string::npos);
}

TEST(ComposeOwnTest, NothingStandsBetweenUsAndLocalRanks) {
  EXPECT_TRUE(ComposeLaunch(Request(Flavour::kLocal, Plan({4})))->argv.empty());
  LaunchRequest request = Request(Flavour::kLocal, Plan({4}));
  request.cpu_bind = "sockets";
  EXPECT_FALSE(ComposeLaunch(request));
}

TEST(ComposeOwnTest, NorAnyProgramBetweenUsAndRanksOverSsh) {
  EXPECT_TRUE(ComposeLaunch(Request(Flavour::kSsh, Plan({4, 4})))->argv.empty());
}

TEST(ComposeTest, TheRanksAreToldThePlan) {
  const auto env = ComposeLaunch(Request(Flavour::kHydra, Plan({4, 4, 4, 2})))->env;
  EXPECT_EQ(env, (std::vector<std::string>{"OVERCAP_LAUNCH_PLAN=hydra:4x3,2"}));
}

}  // namespace
}  // namespace overcap
