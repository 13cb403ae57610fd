// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/rank_packets.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(RankPackets, AnswersAreReadBackAsWritten) {
  const auto go = ParseAnswer(EncodeAnswer({NodeAnswer::Kind::kGo, "fd00::3", 29500, ""}));
  ASSERT_TRUE(go);
  EXPECT_EQ(NodeAnswer::Kind::kGo, go->kind);
  EXPECT_EQ("fd00::3", go->master_addr);
  EXPECT_EQ(29500, go->master_port);
  const auto alone = ParseAnswer(EncodeAnswer({NodeAnswer::Kind::kAlone, "", 0, "nobody is there"}));
  ASSERT_TRUE(alone);
  EXPECT_EQ(NodeAnswer::Kind::kAlone, alone->kind);
  EXPECT_EQ("nobody is there", alone->reason);
  EXPECT_EQ(NodeAnswer::Kind::kStopped,
            ParseAnswer(EncodeAnswer({NodeAnswer::Kind::kStopped, "", 0, ""}))->kind);
}

TEST(RankPackets, OtherTextIsCorrupt) {
  for (const char* packet : {"", "G", "G 1", "G x n1", "G 65536 n1", "G 1 n1 n2", "T", "Stop"}) {
    const auto answer = ParseAnswer(packet);
    ASSERT_FALSE(answer) << packet;
    EXPECT_EQ(ErrorCode::kCorrupt, answer.error().code);
  }
}

}  // namespace
}  // namespace overcap
