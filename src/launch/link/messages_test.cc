// SPDX-License-Identifier: Apache-2.0
#include "launch/link/messages.h"

#include <gtest/gtest.h>
#include <random>
#include <rapidcheck/gtest.h>

namespace overcap::node_link {
namespace {

rc::Gen<std::string> Bytes() {
  return rc::gen::container<std::string>(rc::gen::inRange<char>(-128, 127));
}

int Rank() {
  return *rc::gen::inRange(0, 100'000);
}

Start AnyStart() {
  Start start;
  start.first_rank = Rank();
  start.ranks = *rc::gen::inRange(1, 64);
  start.world_size = start.first_rank + start.ranks + *rc::gen::inRange(0, 64);
  start.node_rank = Rank();
  start.command = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(Bytes()));
  start.env = *rc::gen::container<std::vector<std::string>>(Bytes());
  start.folder = *Bytes();
  start.master_addr = *Bytes();
  start.master_port = *rc::gen::inRange(0, 65536);
  start.grace_us = *rc::gen::inRange<int64_t>(0, 1'000'000'000'000);
  start.cpu_bind = *Bytes();
  return start;
}

RC_GTEST_PROP(Messages, ToTheNodeComeBackAsTheyWere, ()) {
  const std::vector<ToNode> all = {
      AnyStart(), Place{*Bytes(), *rc::gen::inRange(0, 65536)}, Stacks{}, Warn{},
      Stop{*rc::gen::inRange<int64_t>(0, 1'000'000'000'000), *rc::gen::arbitrary<bool>()}};
  for (const ToNode& message : all) {
    const auto back = DecodeToNode(Encode(message));
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == message);
  }
}

RC_GTEST_PROP(Messages, ToTheHeadComeBackAsTheyWere, ()) {
  const std::string output = *Bytes();
  const std::vector<ToHead> all = {
      Hello{1, *Bytes(), *Bytes(), *Bytes(), *rc::gen::inRange(0, 65536), *rc::gen::inRange(-1, 1000)},
      Begun{Rank(), *rc::gen::inRange<int64_t>(0, 1 << 30)},
      Output{Rank(), *rc::gen::inRange(1, 3), output},
      Ended{Rank(), *rc::gen::inRange(-1, 256), *rc::gen::inRange(0, 65), *rc::gen::arbitrary<bool>(),
            *rc::gen::arbitrary<bool>(), *Bytes()},
      Stack{Rank(), *Bytes()},
      Note{*Bytes()},
      NothingLeft{}};
  for (const ToHead& message : all) {
    const std::string frame = Encode(message);
    const auto back = DecodeToHead(frame);
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == message);
  }
}

TEST(Messages, OfNoKnownTypeAreRefused) {
  for (const std::string frame : {"", "Z{}", "\xff", "h{}"}) {
    EXPECT_EQ(DecodeToHead(frame).error().code, ErrorCode::kCorrupt) << frame;
    EXPECT_EQ(DecodeToNode(frame).error().code, ErrorCode::kCorrupt) << frame;
  }
  EXPECT_FALSE(DecodeToNode("X{}"));
  EXPECT_FALSE(DecodeToHead("C{}"));
}

TEST(Messages, WithValuesOutOfTheirRangeAreRefused) {
  for (const std::string frame :
       {R"(B{"rank":-1})", R"(E{"rank":0,"exit_status":256})", R"(H{"free_port":65536})",
        R"(B{"rank":4294967296})", R"(B{"rank":"1"})", R"(N[])", R"(N{"text":)"}) {
    EXPECT_FALSE(DecodeToHead(frame)) << frame;
  }
  for (const std::string frame :
       {R"(S{"command":[]})", R"(S{"command":["x"],"ranks":2,"world_size":1})", R"(T{"grace_us":-1})",
        R"(S{"command":["x"],"cpu_bind":[1]})", R"(S{"command":["x"],"first_rank":16777217})"}) {
    EXPECT_FALSE(DecodeToNode(frame)) << frame;
  }
  EXPECT_FALSE(DecodeToHead(std::string_view("O\0\0\0\0", 5)));
  EXPECT_FALSE(DecodeToHead(std::string_view("O\0\0\0\0\3x", 7)));
  EXPECT_FALSE(DecodeToHead(std::string_view("O\xff\xff\xff\xff\1x", 7)));
}

TEST(Messages, DamagedAnywhereAreReadOrRefusedButNeverMoreThanThat) {
  std::mt19937 random(7);
  Start start;
  start.command = {"python", "\xff\xfe"};
  start.env = {"A=1", "B=\x80"};
  start.cpu_bind = "list:0-1:2";
  const std::vector<std::string> frames = {
      Encode(ToNode(start)),   Encode(ToNode(Place{"n1", 1234})),
      Encode(ToHead(Hello{})), Encode(ToHead(Output{3, 2, "text"})),
      Encode(ToHead(Ended{})), Encode(ToHead(Stack{1, "a\nb"})),
  };
  int refused = 0;
  for (int i = 0; i < 60'000; ++i) {
    std::string frame = frames[random() % frames.size()];
    for (unsigned n = random() % 4; n-- > 0 && !frame.empty();) {
      const size_t at = random() % frame.size();
      switch (random() % 3) {
        case 0:
          frame[at] = static_cast<char>(random());
          break;
        case 1:
          frame.erase(at, random() % 8);
          break;
        default:
          frame.insert(at, 1, static_cast<char>(random()));
      }
    }
    const auto node = DecodeToNode(frame);
    const auto head = DecodeToHead(frame);
    refused += !node && !head;
    EXPECT_FALSE(node && head);
    // What was understood can be said again.
    EXPECT_TRUE(!node || *DecodeToNode(Encode(*node)) == *node);
    EXPECT_TRUE(!head || *DecodeToHead(Encode(*head)) == *head);
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace overcap::node_link
