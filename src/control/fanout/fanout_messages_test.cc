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
      Listing{{{"a/\xff", 5, 1'700'000'000'000'000, "etag-2", ""}, {"b", 0, -1, "", std::string(32, 'a')}}},
      Listing{},
      Pull{kProtocol, "$TMPDIR/x", true, "s3://bucket/x", "-----BEGIN CERTIFICATE-----\n"},
      Where{7, "https://host/bucket/key?X-Amz-Signature=0", ""},
      Where{8, "", "no"},
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
  const std::vector<ToHead> all = {Hello{kProtocol, "1.2", "node1", {"10.0.0.1"}},
                                   Ask{"it is silent"},
                                   Get{3, {{kOne, 5}, {kTwo, 8 << 20}}},
                                   Progress{1, 2},
                                   ready,
                                   Question{9, "a b"},
                                   Object{"config", "\xff"},
                                   Known{kOne.Hex(), 1, 2, 3, 4}};
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
  const auto not_pulled = DecodeToHead(Encode(ToHead(NotPulled{{ErrorCode::kUnavailable, "no", ""}})));
  ASSERT_TRUE(not_pulled);
  EXPECT_EQ(std::get<NotPulled>(*not_pulled).error.code, ErrorCode::kUnavailable);
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
  EXPECT_FALSE(DecodeToHead("K{\"files\":-1}"));
  EXPECT_FALSE(DecodeToNode("L{\"objects\":[{\"key\":\"a\",\"size\":-1}]}"));
  EXPECT_FALSE(DecodeToNode("L{\"objects\":[7]}"));
  EXPECT_FALSE(DecodeToNode(""));
  EXPECT_FALSE(DecodeToNode("O\xff\xff"));
}

}  // namespace
}  // namespace overcap::fanout
