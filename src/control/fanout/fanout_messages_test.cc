// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_messages.h"

#include <gtest/gtest.h>

namespace overcap::fanout {
namespace {

const Digest kOne = Sha256Of("one"), kTwo = Sha256Of("two");

TEST(FanoutMessages, WhatTheHeadSaysComesBack) {
  const std::vector<ToNode> all = {
      Object{"index/ab", std::string("\0bytes\xff", 7)},
      Start{kProtocol, kOne.Hex(), std::string(64, 'a'), "/local/\xff env", {"/old", "/older"}, false, true},
      Use{"node7", {"10.0.0.7", "fd00::7"}, 4711},
      Data{7, "\1\1abc"},
      Finish{},
  };
  for (const ToNode& message : all) {
    const std::string frame = Encode(message);
    const auto back = DecodeToNode(frame);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, message) << frame;
  }
}

TEST(FanoutMessages, WhatNodesSayComesBack) {
  Ready ready;
  ready.port = 65535;
  ready.files = 3;
  ready.from_peers = 1ll << 40;
  ready.problems = {"'a': no"};
  const std::vector<ToHead> all = {Hello{kProtocol, "1.2", "node1", {"10.0.0.1"}}, Ask{"it is silent"},
                                   Get{3, {{kOne, 5}, {kTwo, 8 << 20}}}, Progress{1, 2}, ready};
  for (const ToHead& message : all) {
    const std::string frame = Encode(message);
    const auto back = DecodeToHead(frame);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(Encode(*back), frame);
  }
  const auto trouble = DecodeToHead(Encode(ToHead(Trouble{{ErrorCode::kDenied, "no", "ask"}})));
  ASSERT_TRUE(trouble);
  EXPECT_EQ(std::get<Trouble>(*trouble).error.code, ErrorCode::kDenied);
  EXPECT_EQ(std::get<Trouble>(*trouble).error.hint, "ask");
}

TEST(FanoutMessages, ARequestIsBounded) {
  EXPECT_FALSE(DecodeChunkList(""));
  EXPECT_FALSE(DecodeChunkList(std::string(35, 'x')));
  EXPECT_FALSE(DecodeChunkList(EncodeChunkList({{kOne, 0}})));
  EXPECT_FALSE(DecodeChunkList(EncodeChunkList({{kOne, (8 << 20) + 1}})));
  EXPECT_FALSE(DecodeChunkList(EncodeChunkList({{kOne, 8 << 20}, {kTwo, 8 << 20}, {kTwo, 1}})));
  EXPECT_TRUE(DecodeChunkList(EncodeChunkList({{kOne, 8 << 20}, {kTwo, 8 << 20}})));
}

TEST(FanoutMessages, PortsAndNumbersOutOfRangeAreRefused) {
  EXPECT_FALSE(DecodeToNode("U{\"peer\":\"x\",\"addresses\":[],\"port\":65536}"));
  EXPECT_FALSE(DecodeToHead("R{\"port\":1,\"files\":-1}"));
  EXPECT_FALSE(DecodeToHead("Z{}"));
  EXPECT_FALSE(DecodeToNode(""));
  EXPECT_FALSE(DecodeToNode("O\xff\xff"));
}

}  // namespace
}  // namespace overcap::fanout
