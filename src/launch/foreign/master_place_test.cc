// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/master_place.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

const RankPlace kOneHost{1, 4, 1, 4, 0, "SLURM_*"};
const RankPlace kTwoHosts{3, 4, 1, 2, 1, "SLURM_*"};

MasterPlace Master(const std::string& words, const RankPlace& place, const std::string& first_host = "",
                   int launcher_id = 1) {
  return MasterPlaceFrom(Variables(Split(words, ' ')), place, first_host, launcher_id);
}

TEST(MasterPlaceTest, TheLaunchsWordComesFirstThenTheUsers) {
  EXPECT_EQ(Master("MASTER_ADDR=u MASTER_PORT=1 OVERCAP_MASTER_ADDR=n7 OVERCAP_MASTER_PORT=2", kTwoHosts),
            (MasterPlace{"n7", 2}));
  EXPECT_EQ(Master("MASTER_ADDR=u MASTER_PORT=1", kTwoHosts), (MasterPlace{"u", 1}));
}

TEST(MasterPlaceTest, RankZeroIsOnTheFirstHost) {
  EXPECT_EQ(Master("SLURM_STEP_NODELIST=rack[2-3]n01", kTwoHosts).addr, "rack2n01");
  EXPECT_EQ(Master("SLURM_STEP_NODELIST=n[1-", kTwoHosts, "pbs1").addr, "pbs1");
  EXPECT_EQ(Master("SLURM_STEP_NODELIST=n1", kOneHost).addr, "127.0.0.1");
  EXPECT_EQ(Master("", {3, 4, 1, 2, 1, "PMI_*"}).addr, "");
}

TEST(MasterPlaceTest, ThePortIsTheSameForAllRanksOfAStepOnly) {
  const std::string step = "SLURM_JOB_ID=12 SLURM_STEP_ID=3";
  const int port = Master(step, kTwoHosts, "", 100).port;
  EXPECT_EQ(Master(step, kOneHost, "", 200).port, port);
  EXPECT_NE(Master("SLURM_JOB_ID=12 SLURM_STEP_ID=4", kTwoHosts, "", 100).port, port);
  EXPECT_NE(Master("", kOneHost, "", 100).port, Master("", kOneHost, "", 101).port);
  for (int id = 0; id < 5000; ++id) {
    const int one = Master("", kOneHost, "", id).port;
    ASSERT_GE(one, 20000);
    ASSERT_LE(one, 32767);
  }
}

TEST(MasterPlaceTest, ABadPortIsNone) {
  for (const char* bad : {"MASTER_PORT=0", "MASTER_PORT=65536", "MASTER_PORT=x", "MASTER_PORT=-5"})
    EXPECT_GE(Master(bad, kOneHost).port, 20000) << bad;
}

}  // namespace
}  // namespace overcap
