// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_variables.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"
#include "launch/compose/launch_command.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

Variables Sample(const std::string& name) {
  return Variables(Split(PosixFiles().Read(StrCat(OVERCAP_TEST_DATA, "/launch-env/", name)).value(), '\n'));
}

// "RANK/WORLD_SIZE local LOCAL_RANK/LOCAL_WORLD_SIZE node NODE_RANK by FAMILY"
std::string Place(const Variables& variables) {
  const auto place = RankPlaceFrom(variables);
  if (!place) return StrCat(ErrorCodeName(place.error().code), ": ", place.error().message);
  return StrCat(place->rank, "/", place->world_size, " local ", place->local_rank, "/",
                place->local_world_size, " node ", place->node_rank, " by ", place->from);
}
std::string Place(const std::string& words) {
  return Place(Variables(Split(words, ' ')));
}

TEST(RankVariablesTest, RealEnvironmentsAreUnderstood) {
  EXPECT_EQ(Place(Sample("openmpi-4.1.4-local-rank1.txt")), "1/2 local 1/2 node 0 by OMPI_COMM_WORLD_*");
  EXPECT_EQ(Place(Sample("openmpi-4.1.4-3hosts-rank2.txt")), "2/3 local 0/1 node 2 by OMPI_COMM_WORLD_*");
  EXPECT_EQ(Place(Sample("mpich-4.0.2-local-rank1.txt")), "1/2 local 1/2 node 0 by PMI_*");
  EXPECT_EQ(Place(Sample("mpich-4.0.2-3hosts-rank2.txt")), "2/3 local 0/1 node 2 by PMI_*");
  EXPECT_EQ(Place(Sample("slurm-22.05.8-step-rank3.txt")), "3/4 local 1/2 node 1 by SLURM_*");
  EXPECT_EQ(Place(Sample("torchrun-1.13.1-c10d-rank1.txt")), "1/2 local 1/2 node 0 by TORCHELASTIC_*");
}

TEST(RankVariablesTest, ABatchScriptIsNoRank) {
  EXPECT_EQ(Place(Sample("slurm-22.05.8-batch-script.txt")),
            "not_found: no launcher has started this process as a rank");
  EXPECT_EQ(Place(Sample("openpbs-23.06-job.txt")),
            "not_found: no launcher has started this process as a rank");
  EXPECT_EQ(Place(""), "not_found: no launcher has started this process as a rank");
}

TEST(RankVariablesTest, TheInnermostLauncherCounts) {
  EXPECT_EQ(
      Place("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 OMPI_COMM_WORLD_RANK=3 "
            "OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=4"),
      "3/4 local 3/4 node 0 by OMPI_COMM_WORLD_*");
  // a shell inside of a step with PMI, from which another step was started without it
  EXPECT_EQ(
      Place("PMI_RANK=0 PMI_SIZE=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 "
            "SLURM_STEP_TASKS_PER_NODE=2"),
      "1/2 local 1/2 node 0 by SLURM_*");
}

TEST(RankVariablesTest, ThePlanSaysWhichLauncherIsTheInnermost) {
  EXPECT_EQ(Place("OVERCAP_LAUNCH_PLAN=srun:1x2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 SLURM_PROCID=1 "
                  "SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=1(x2)"),
            "1/2 local 0/1 node 1 by SLURM_*");
}

TEST(RankVariablesTest, PalsTellsRanksButNotHowManyThereAre) {
  const std::string pals = "PALS_RANKID=13 PALS_LOCAL_RANKID=1 PALS_NODEID=1";
  EXPECT_EQ(Place(pals), "corrupt: PALS_* says rank 13, but not how many there are");
  EXPECT_EQ(Place(pals + " PMI_SIZE=24 PMI_LOCAL_SIZE=12"), "13/24 local 1/12 node 1 by PALS_*");
  EXPECT_EQ(Place(pals + " OVERCAP_LAUNCH_PLAN=pals:12x2"), "13/24 local 1/12 node 1 by PALS_*");
}

TEST(RankVariablesTest, ThePlanGivesNodeRanksOfUnevenHosts) {
  const std::string rank4 = "PMI_RANK=4 PMI_SIZE=6 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2";
  EXPECT_EQ(Place(rank4), "4/6 local 0/2 node 2 by PMI_*");  // as if hosts were equal
  EXPECT_EQ(Place(rank4 + " OVERCAP_LAUNCH_PLAN=hydra:4,2"), "4/6 local 0/2 node 1 by PMI_*");
}

TEST(RankVariablesTest,
     SlurmsNodeNumberIsNotThePlans) {  // an arbitrary distribution keeps Slurm's order of nodes
  EXPECT_EQ(
      Place(
          "OVERCAP_LAUNCH_PLAN=srun:3,1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=0 SLURM_NODEID=1 "
          "SLURM_STEP_TASKS_PER_NODE=1,3"),
      "0/4 local 0/3 node 0 by SLURM_*");
}

TEST(RankVariablesTest, SlurmsTasksPerNodeAreReadInFull) {
  const std::string step = "SLURM_PROCID=4 SLURM_STEP_NUM_TASKS=5 SLURM_LOCALID=0 SLURM_NODEID=2 ";
  EXPECT_EQ(Place(step + "SLURM_STEP_TASKS_PER_NODE=2(x2),1"), "4/5 local 0/1 node 2 by SLURM_*");
  EXPECT_EQ(Place(step + "SLURM_STEP_TASKS_PER_NODE=2(x"),
            "corrupt: SLURM_* says local rank 0 of 0 and 5 ranks in all");
}

TEST(RankVariablesTest, LocalIdIsNotSpeltLocalUnderscoreId) {
  EXPECT_EQ(Place("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCAL_ID=1 SLURM_NODEID=0 "
                  "SLURM_STEP_TASKS_PER_NODE=2"),
            "corrupt: SLURM_* says rank 1 of 2, but no local rank");
}

TEST(RankVariablesTest, RanksDealtOutOneByOneHaveANodeToo) {
  EXPECT_EQ(Place("PMI_RANK=4 PMI_SIZE=6 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2"),
            "4/6 local 1/2 node 1 by PMI_*");
  EXPECT_EQ(Place("PMI_RANK=4 PMI_SIZE=5 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2"),
            "4/5 local 0/2 node -1 by PMI_*");
}

TEST(RankVariablesTest, ContradictionsAreNamed) {
  EXPECT_EQ(Place("PMI_RANK=x PMI_SIZE=2 MPI_LOCALRANKID=0"),
            "corrupt: variable 'PMI_RANK' is no number of a rank: 'x'");
  EXPECT_EQ(Place("PMI_RANK=-1 PMI_SIZE=2 MPI_LOCALRANKID=0"),
            "corrupt: variable 'PMI_RANK' is no number of a rank: '-1'");
  EXPECT_EQ(Place("PMI_RANK=2 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2"),
            "corrupt: PMI_* says rank 2 of 2");
  const std::string rank1 = "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 OVERCAP_LAUNCH_PLAN=";
  EXPECT_EQ(Place(rank1 + "hydra:2x3"), "corrupt: PMI_* says 4 ranks, the launch's plan says 6");
  EXPECT_EQ(Place(rank1 + "hydra:1,3"),
            "corrupt: PMI_* says 2 ranks on the host of rank 1, the launch's plan says 3");
  EXPECT_EQ(
      Place(rank1 + "hydra:nonsense"),
      "corrupt: variable 'OVERCAP_LAUNCH_PLAN': 'nonsense' does not say how many ranks are on each host");
}

TEST(RankVariablesTest, AWorldOfOneThatIsOursGivesWayToALauncherWithinIt) {
  const std::string mpi =
      " OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2";
  const std::string one = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 TORCHELASTIC_RUN_ID=";
  EXPECT_EQ(Place(one + "overcap-job" + mpi), "1/2 local 1/2 node 0 by OMPI_COMM_WORLD_*");
  EXPECT_EQ(Place(one + "overcap-job"), "0/1 local 0/1 node 0 by TORCHELASTIC_*");
  EXPECT_EQ(Place(one + "none" + mpi), "0/1 local 0/1 node 0 by TORCHELASTIC_*");  // torchrun's
}

TEST(RankVariablesTest, ARankIsToldAllThatTorchrunTells) {
  Variables variables;
  const TorchRun run{.id = "overcap-job", .errors = "/errors", .restarts = 1, .max_restarts = 3, .nodes = 2};
  SetRankVariables({{3, 4, 1, 2, 1, ""}, "n1", 29500, {8, 8}, run}, &variables);
  EXPECT_EQ(variables.entries(),
            (std::vector<std::string>{"RANK=3",
                                      "WORLD_SIZE=4",
                                      "LOCAL_RANK=1",
                                      "LOCAL_WORLD_SIZE=2",
                                      "NODE_RANK=1",
                                      "GROUP_RANK=1",
                                      "GROUP_WORLD_SIZE=2",
                                      "ROLE_RANK=3",
                                      "ROLE_WORLD_SIZE=4",
                                      "ROLE_NAME=default",
                                      "MASTER_ADDR=n1",
                                      "MASTER_PORT=29500",
                                      "TORCHELASTIC_RUN_ID=overcap-job",
                                      "TORCHELASTIC_RESTART_COUNT=1",
                                      "TORCHELASTIC_MAX_RESTARTS=3",
                                      "TORCHELASTIC_USE_AGENT_STORE=False",
                                      "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                                      "TORCHELASTIC_ERROR_FILE=/errors/error-3.json",
                                      "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                                      "OMP_NUM_THREADS=4",
                                      "OVERCAP_OMP_NUM_THREADS=4"}));
}

TEST(RankVariablesTest, WhatIsNotKnownIsTakenOut) {
  Variables variables({"NODE_RANK=7", "MASTER_ADDR=old", "RANK=9", "KEPT=1", "GROUP_RANK=7",
                       "GROUP_WORLD_SIZE=8", "TORCHELASTIC_ERROR_FILE=/old",
                       "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "OMP_NUM_THREADS=2"});
  SetRankVariables({{3, 5, 0, 2, -1, ""}, "", 0, {8, 8}, {.id = "none"}}, &variables);
  for (const char* name : {"NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "GROUP_WORLD_SIZE",
                           "TORCHELASTIC_ERROR_FILE"})
    EXPECT_FALSE(variables.Has(name)) << name;
  EXPECT_EQ(variables.Get("RANK"), "3");
  for (const char* kept : {"KEPT=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "OMP_NUM_THREADS=2"})
    EXPECT_EQ(std::ranges::count(variables.entries(), kept), 1) << kept;
}

// Whatever the plan, every rank finds its place from what a launcher tells and the plan.
RC_GTEST_PROP(RankVariablesProperty, EveryRankFindsItsPlaceInThePlan, ()) {
  RankPlan plan;
  const int hosts = *rc::gen::inRange(1, 8);
  for (int i = 0; i < hosts; ++i) {
    const int ranks = *rc::gen::inRange(1, 5);
    plan.hosts.push_back({StrCat("h", i), plan.world_size, ranks, 0});
    plan.world_size += ranks;
  }
  const int rank = *rc::gen::inRange(0, plan.world_size);
  const int node = plan.HostOf(rank);
  const PlannedHost& host = plan.hosts[static_cast<size_t>(node)];
  const Variables variables({StrCat("PMI_RANK=", rank), StrCat("PMI_SIZE=", plan.world_size),
                             StrCat("MPI_LOCALRANKID=", rank - host.first_rank),
                             StrCat("MPI_LOCALNRANKS=", host.ranks),
                             StrCat(kPlanVariable, "=hydra:", RanksPerHostText(plan))});
  const RankPlace expected{rank, plan.world_size, rank - host.first_rank, host.ranks, node, "PMI_*"};
  RC_ASSERT(RankPlaceFrom(variables).value() == expected);
}

}  // namespace
}  // namespace overcap
