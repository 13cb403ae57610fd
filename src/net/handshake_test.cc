// SPDX-License-Identifier: Apache-2.0
#include "net/handshake.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace overcap {
namespace {

std::string Hex(const std::array<uint8_t, 32>& digest) {
  return LinkKey{std::string(digest.begin(), digest.end())}.Hex();
}

struct Pair {
  Fd head, node;
  Pair() {
    int fds[2];
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    head.Reset(fds[0]);
    node.Reset(fds[1]);
  }
};

// The cases 1, 2 and 6 of RFC 4231.
TEST(Handshake, ComputesTheHmacOfTheStandard) {
  EXPECT_EQ("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")));
  EXPECT_EQ("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            Hex(HmacSha256("Jefe", "what do ya want for nothing?")));
  EXPECT_EQ(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      Hex(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")));
}

TEST(Handshake, AKeySurvivesItsHexForm) {
  SeededRandom random(1);
  const LinkKey key = LinkKey::Make(random);
  EXPECT_EQ(key.bytes, LinkKey::FromHex(key.Hex())->bytes);
  EXPECT_FALSE(LinkKey::FromHex(key.Hex().substr(1)));
  EXPECT_FALSE(LinkKey::FromHex(std::string(64, 'g')));
}

TEST(Handshake, TwoThatKnowTheKeyFindEachOther) {
  SeededRandom random(1);
  const LinkKey key = LinkKey::Make(random);
  Pair pair;
  Handshake head(Handshake::Role::kHead, key, random), node(Handshake::Role::kNode, key, random);
  EXPECT_FALSE(*head.Step(pair.head));
  EXPECT_FALSE(*node.Step(pair.node));
  EXPECT_TRUE(*head.Step(pair.head));
  EXPECT_TRUE(*node.Step(pair.node));
}

TEST(Handshake, WhatFollowsStaysInTheSocket) {
  SeededRandom random(1);
  const LinkKey key = LinkKey::Make(random);
  Pair pair;
  Handshake head(Handshake::Role::kHead, key, random), node(Handshake::Role::kNode, key, random);
  EXPECT_FALSE(*head.Step(pair.head));
  EXPECT_FALSE(*node.Step(pair.node));
  ASSERT_EQ(5, send(pair.node.Get(), "hello", 5, 0));
  EXPECT_TRUE(*head.Step(pair.head));
  char bytes[16];
  EXPECT_EQ(5, recv(pair.head.Get(), bytes, sizeof bytes, MSG_DONTWAIT));
}

TEST(Handshake, AnotherKeyIsDenied) {
  SeededRandom random(1);
  Pair pair;
  Handshake head(Handshake::Role::kHead, LinkKey::Make(random), random);
  Handshake node(Handshake::Role::kNode, LinkKey::Make(random), random);
  EXPECT_FALSE(*head.Step(pair.head));
  EXPECT_FALSE(*node.Step(pair.node));
  const auto seen = head.Step(pair.head);
  ASSERT_FALSE(seen);
  EXPECT_EQ(ErrorCode::kDenied, seen.error().code);
  EXPECT_FALSE(node.Step(pair.node));
}

TEST(Handshake, ItsOwnWordsSentBackAreDenied) {
  SeededRandom random(1);
  const LinkKey key = LinkKey::Make(random);
  Pair pair;
  Handshake head(Handshake::Role::kHead, key, random);
  EXPECT_FALSE(*head.Step(pair.head));
  char bytes[64];
  ASSERT_EQ(32, recv(pair.node.Get(), bytes, sizeof bytes, 0));
  ASSERT_EQ(32, send(pair.node.Get(), bytes, 32, 0));
  EXPECT_FALSE(*head.Step(pair.head));
  ASSERT_EQ(32, recv(pair.node.Get(), bytes, sizeof bytes, 0));
  ASSERT_EQ(32, send(pair.node.Get(), bytes, 32, 0));
  EXPECT_FALSE(head.Step(pair.head));
}

TEST(Handshake, AnEndThatClosesIsUnavailable) {
  SeededRandom random(1);
  Pair pair;
  Handshake head(Handshake::Role::kHead, LinkKey::Make(random), random);
  pair.node.Reset();
  EXPECT_FALSE(head.Step(pair.head));
}

}  // namespace
}  // namespace overcap
