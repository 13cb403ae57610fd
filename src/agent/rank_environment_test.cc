// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_environment.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace overcap {
namespace {

JobSpec TwoRanks() {
  JobSpec spec;
  spec.id = "ada_1700000000_0000000a";
  spec.resources.ranks_per_node = 2;
  return spec;
}

std::string BlobOf(const std::vector<std::string>& entries) {
  std::string blob;
  for (const std::string& entry : entries) blob += entry + '\0';
  return blob;
}

TEST(RankEnvironment, SaysWhereTheRankStands) {
  AgentOptions options{"/r/jobs/x", "/r/store", 3, 0, {4, 6}, {}, {}, 10, true};
  JobSpec spec = TwoRanks();
  spec.max_restarts = 4;
  EXPECT_EQ(RankEnvironment(BlobOf({"A=1", "B="}), spec, options, {"/work", 29501, {}, {4, 4}}, 1),
            (std::vector<std::string>{"A=1",
                                      "B=",
                                      "RANK=1",
                                      "WORLD_SIZE=2",
                                      "LOCAL_RANK=1",
                                      "LOCAL_WORLD_SIZE=2",
                                      "NODE_RANK=0",
                                      "GROUP_RANK=0",
                                      "GROUP_WORLD_SIZE=1",
                                      "ROLE_RANK=1",
                                      "ROLE_WORLD_SIZE=2",
                                      "ROLE_NAME=default",
                                      "MASTER_ADDR=127.0.0.1",
                                      "MASTER_PORT=29501",
                                      "TORCHELASTIC_RUN_ID=overcap-ada_1700000000_0000000a",
                                      "TORCHELASTIC_RESTART_COUNT=2",
                                      "TORCHELASTIC_MAX_RESTARTS=4",
                                      "TORCHELASTIC_USE_AGENT_STORE=False",
                                      "TORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                                      "TORCHELASTIC_ERROR_FILE=/r/jobs/x/attempt-3/error-1.json",
                                      "TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                                      "OMP_NUM_THREADS=2",
                                      "OVERCAP_OMP_NUM_THREADS=2",
                                      "CUDA_VISIBLE_DEVICES=4,6",
                                      "OVERCAP_JOB_ID=ada_1700000000_0000000a",
                                      "OVERCAP_ATTEMPT=3",
                                      "OVERCAP_JOB_DIR=/r/jobs/x",
                                      "OVERCAP_AGENT=ada_1700000000_0000000a.3.0",
                                      "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                                      "PYTHONUNBUFFERED=1",
                                      "PWD=/work",
                                      "OVERCAP_STATE_DIR=/r/jobs/x/state"}));
}

TEST(RankEnvironment, WhereNoOtherGpuCanBeOpenedCudaCountsFromZero) {
  AgentOptions options;
  options.gpus = {4, 6};
  options.private_gpus = true;
  const auto env = RankEnvironment(BlobOf({"OVERCAP_GPU_INDICES=1"}), TwoRanks(), options, {"/work", 1}, 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "CUDA_VISIBLE_DEVICES=0,1"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_GPU_INDICES=4,6"), 1);
  const auto other = RankEnvironment(BlobOf({"OVERCAP_GPU_INDICES=1"}), TwoRanks(), {}, {"/work", 1}, 0);
  EXPECT_EQ(std::count(other.begin(), other.end(), "OVERCAP_GPU_INDICES=1"), 0);
}

TEST(RankEnvironment, ItsOwnVariablesWinOverTheSubmitters) {
  const auto env = RankEnvironment(BlobOf({"RANK=9", "PWD=/home", "OVERCAP_TASK_ID=4", "RANKS=9"}),
                                   TwoRanks(), {}, {"/work", 1}, 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "RANK=9"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "PWD=/home"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_TASK_ID=4"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "RANKS=9"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "CUDA_VISIBLE_DEVICES="), 1);
}

TEST(RankEnvironment, TakesAnotherPort) {
  auto env = RankEnvironment("", TwoRanks(), {}, {"/work", 1}, 0);
  SetMasterPort(&env, 29502);
  EXPECT_EQ(std::count(env.begin(), env.end(), "MASTER_PORT=1"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "MASTER_PORT=29502"), 1);
}

TEST(RankEnvironment, NamesTheTaskOfAnArray) {
  JobSpec spec = TwoRanks();
  spec.array.ranges = {{5, 9, 1}};
  AgentOptions options;
  options.job_dir = "/r/jobs/x";
  auto env = RankEnvironment("", spec, options, {"/work", 1}, 0);
  SetTask(&env, spec, options, 7, 2);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_STATE_DIR=/r/jobs/x/state/task-7"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_TASK_COUNT=5"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_TASK_ID=7"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "OVERCAP_TASK_TRY=2"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "TORCHELASTIC_RESTART_COUNT=1"), 1);
}

TEST(RankEnvironment, GivesEachTaskOfASweepItsValues) {
  JobSpec spec = TwoRanks();
  spec.array.ranges = {{0, 3, 1}};
  spec.sweep = {{"lr", {"1e-4", "1e-3"}}, {"gamma", {"0.9", "1"}}};
  auto env = RankEnvironment(BlobOf({"lr=7", "other=1"}), spec, {}, {"/work", 1}, 0);
  SetTask(&env, spec, {}, 1, 1);
  SetTask(&env, spec, {}, 2, 1);
  const std::vector<std::string> last(env.end() - 5, env.end());
  EXPECT_EQ(last, (std::vector<std::string>{"lr=1e-3", "gamma=0.9", "OVERCAP_STATE_DIR=/state/task-2",
                                            "OVERCAP_TASK_ID=2", "OVERCAP_TASK_TRY=1"}));
  EXPECT_EQ(std::count(env.begin(), env.end(), "lr=7"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "other=1"), 1);
}

TEST(RankEnvironment, TheClustersVariablesWinOverTheSubmittersAndTheGpusAreAsItSetThem) {
  AgentOptions options;
  options.gpus = {7};
  const RankSetting setting{"/work", 1, {"SLURM_JOB_ID=5", "CUDA_VISIBLE_DEVICES=2,3", "RANK=3"}};
  const auto env =
      RankEnvironment(BlobOf({"SLURM_JOB_ID=4", "CUDA_VISIBLE_DEVICES=0"}), TwoRanks(), options, setting, 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "SLURM_JOB_ID=5"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "SLURM_JOB_ID=4"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "CUDA_VISIBLE_DEVICES=2,3"), 1);
  EXPECT_EQ(std::count(env.begin(), env.end(), "CUDA_VISIBLE_DEVICES=0"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "CUDA_VISIBLE_DEVICES=7"), 0);
  EXPECT_EQ(std::count(env.begin(), env.end(), "RANK=3"), 0);
}

TEST(RankEnvironment, ABatchScriptIsNoRank) {
  JobSpec spec = TwoRanks();
  spec.batch = true;
  const auto env = RankEnvironment("", spec, {}, {"/work", 1}, 0);
  for (const std::string& entry : env) {
    EXPECT_FALSE(entry.starts_with("RANK=") || entry.starts_with("MASTER_") ||
                 entry.starts_with("WORLD_SIZE="));
  }
}

}  // namespace
}  // namespace overcap
