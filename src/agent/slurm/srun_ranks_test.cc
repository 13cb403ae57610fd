// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/srun_ranks.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

using Cause = AttemptEnd::Cause;

AttemptEnd EndedBy(Cause cause) {
  AttemptEnd end;
  end.cause = cause;
  return end;
}

TEST(SrunRanks, AnEndIsToldAsThatOfRanksOnOneNode) {
  EXPECT_EQ(EndingOf(EndedBy(Cause::kDone)), (Ending{JobState::kSucceeded, 0, 0, -1, ""}));
  EXPECT_EQ(EndingOf(EndedBy(Cause::kCancelled)).state, JobState::kCancelled);
  AttemptEnd failed = EndedBy(Cause::kRankFailed);
  failed.first = RankFailure{3, "n2", {7, 0}, true, false, ""};
  EXPECT_EQ(EndingOf(failed), (Ending{JobState::kFailed, 7, 0, 3, ""}));
  failed.first = RankFailure{3, "n2", {137, 9}, true, true, ""};
  EXPECT_EQ(EndingOf(failed).reason.find("rank 3 on 'n2' failed first: killed by the kernel"), 0u);
}

TEST(SrunRanks, AFailedNodeIsNamedAlsoWhenSlurmSaysStop) {
  for (const Cause cause : {Cause::kHostFailed, Cause::kCancelled}) {
    AttemptEnd end = EndedBy(cause);
    end.bad_hosts = {"n2"};
    end.message = "srun: error: Node failure on n2";
    EXPECT_EQ(EndingOf(end),
              (Ending{JobState::kLost, -1, 0, -1, "node 'n2' failed: srun: error: Node failure on n2"}));
  }
}

TEST(SrunRanks, TheGpusOfEachNodeAreKnownWhereAllHaveTheSame) {
  EXPECT_EQ(GpusPerNode(Variables()), 0);
  EXPECT_EQ(GpusPerNode(Variables({"SLURM_GPUS_PER_NODE=a40:2", "SLURM_GPUS_ON_NODE=2"})), 2);
  EXPECT_EQ(GpusPerNode(Variables({"SLURM_GPUS=3", "SLURM_GPUS_ON_NODE=2"})), -1);
}

class SrunWords : public testing::Test {
 protected:
  std::string Make(int gpus_per_node) {
    spec_.id = "x";
    spec_.command = {"train", "a b"};
    spec_.resources.nodes = 2;
    spec_.resources.ranks_per_node = 2;
    spec_.resources.cpus = 7;
    const std::vector<std::string> cluster = {"SLURM_JOB_ID=5", "SLURM_PROCID=0"};
    const SrunSetting setting{{"n1", "n2"}, gpus_per_node, "/bin/srun", "/bin/overcap", "/code", 1};
    const PosixClock clock;
    auto made =
        SrunRanks::Make(spec_, options_, {std::string_view("A=1\0", 4), cluster}, setting, clock, nullptr);
    EXPECT_TRUE(made);
    if (!made) return "";
    EXPECT_EQ(made->Size(), 4u);
    environment_ = made->FirstEnvironment();
    return made->Words();
  }
  JobSpec spec_;
  AgentOptions options_;
  std::vector<std::string> environment_;
};

TEST_F(SrunWords, RanksArePlacedAsPlannedAndGetTheirGpusAndProcessors) {
  const std::string words = Make(4);
  EXPECT_NE(words.find("-n 4 --distribution=arbitrary --nodelist=n1,n1,n2,n2 --gpus-per-node=4"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("--cpus-per-task=4 /bin/overcap rank -- train 'a b'"), std::string::npos) << words;
}

TEST_F(SrunWords, WhereNodesDifferNoNumberOfGpusIsAskedFor) {
  const std::string words = Make(-1);
  EXPECT_EQ(words.find("--gpus-per-node"), std::string::npos) << words;
  EXPECT_EQ(words.find("--overlap"), std::string::npos) << words;
}

TEST_F(SrunWords, WhatMakesItARankIsLeftToItsNode) {
  (void)Make(0);
  const auto has = [&](const std::string& entry) {
    return std::count(environment_.begin(), environment_.end(), entry) == 1;
  };
  EXPECT_TRUE(has("A=1") && has("SLURM_JOB_ID=5") && has("OVERCAP_JOB_ID=x"));
  for (const std::string& entry : environment_) EXPECT_FALSE(entry.starts_with("RANK=")) << entry;
}

}  // namespace
}  // namespace overcap
