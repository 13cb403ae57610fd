// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_claim.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

Claim Start(int64_t slurm_id, int restart) {
  Claim claim = OwnClaim();
  claim.slurm_id = slurm_id;
  claim.slurm_restart = restart;
  return claim;
}

class SlotClaimTest : public testing::Test {
 protected:
  // The number of the attempt; 0: it is this start's already.
  int Next(int64_t slurm_id, int restart, int first = 1) {
    auto claimed = ClaimNextAttempt(folder_.Path(), Start(slurm_id, restart), first);
    EXPECT_TRUE(claimed);
    return claimed && *claimed ? (*claimed)->number : 0;
  }
  TempFolder folder_;
};

TEST_F(SlotClaimTest, EveryStartOfAJobIsTheNextAttempt) {
  EXPECT_EQ(Next(5, 0), 1);
  EXPECT_EQ(Next(5, 1), 2);
  EXPECT_EQ(Next(5, 2), 3);
  EXPECT_EQ(PosixFiles().List(folder_.Path())->size(), 3u);
}

TEST_F(SlotClaimTest, AStartThatSlurmMadeTwiceHasOneAttempt) {
  EXPECT_EQ(Next(5, 0), 1);
  EXPECT_EQ(Next(5, 0), 0);
  EXPECT_EQ(Next(5, 1), 2);
  EXPECT_EQ(Next(5, 0), 0);
  EXPECT_EQ(PosixFiles().List(folder_.Path())->size(), 2u);
}

TEST_F(SlotClaimTest, AStartThatTriesAgainMakesOneAttemptMore) {
  EXPECT_EQ(Next(5, 0), 1);
  EXPECT_EQ(Next(5, 0, 2), 2);
  EXPECT_EQ(Next(5, 0), 0);
  EXPECT_EQ(Next(5, 1), 3);
}

TEST_F(SlotClaimTest, AnAttemptThatTellsNothingIsSomebodyElses) {
  ASSERT_TRUE(PosixFiles().MakeFolders(folder_.Path() + "/attempt-1/code"));
  ASSERT_TRUE(PosixFiles().WriteAtomic(folder_.Path() + "/attempt-1/agent-0.claim", "{", false));
  EXPECT_EQ(Next(5, 0), 2);
}

TEST_F(SlotClaimTest, TheAttemptAppearsWithItsClaimAndItsReport) {
  ASSERT_EQ(Next(5, 3), 1);
  const auto claim = ClaimFromJson(*PosixFiles().Read(folder_.Path() + "/attempt-1/agent-0.claim"));
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->slurm_id, 5);
  EXPECT_EQ(claim->slurm_restart, 3);
  EXPECT_TRUE(PosixFiles().Exists(folder_.Path() + "/attempt-1/agent-0.jsonl"));
}

TEST_F(SlotClaimTest, AFolderThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(PosixFiles().WriteAtomic(folder_.Path() + "/file", "", false));
  EXPECT_FALSE(ClaimNextAttempt(folder_.Path() + "/file", Start(1, 0)));
}

}  // namespace
}  // namespace overcap
