// SPDX-License-Identifier: Apache-2.0
#include "net/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>

namespace overcap {
namespace {

using std::chrono::milliseconds;

FrameDeadline In(milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

struct Pair {
  Fd a, b;
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) abort();
    a = Fd(fds[0]), b = Fd(fds[1]);
  }
};

TEST(FrameTest, FramesArriveOneByOneAndWhole) {
  Pair pair;
  const std::string binary("\0\xff\n", 3);
  ASSERT_TRUE(SendFrame(pair.a, "first", In(milliseconds(1000))));
  ASSERT_TRUE(SendFrame(pair.a, "", In(milliseconds(1000))));
  ASSERT_TRUE(SendFrame(pair.a, binary, In(milliseconds(1000))));
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(1000))).value(), "first");
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(1000))).value(), "");
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(1000))).value(), binary);
}

TEST(FrameTest, AFrameLargerThanTheSocketsBufferArrives) {
  Pair pair;
  const std::string big(20 << 20, 'x');
  std::thread sender([&] { EXPECT_TRUE(SendFrame(pair.a, big, In(milliseconds(20000)))); });
  const auto received = ReceiveFrame(pair.b, In(milliseconds(20000)));
  sender.join();
  EXPECT_TRUE(received && *received == big);
}

TEST(FrameTest, ASilentPeerIsUnavailableAtTheDeadline) {
  Pair pair;
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(5))).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(SendFrame(pair.a, std::string(20 << 20, 'x'), In(milliseconds(5))).error().code,
            ErrorCode::kUnavailable);
}

TEST(FrameTest, AClosedPeerIsUnavailableAndRaisesNoSignal) {
  Pair pair;
  pair.b.Reset();
  EXPECT_EQ(SendFrame(pair.a, "x", In(milliseconds(1000))).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ReceiveFrame(pair.a, In(milliseconds(1000))).error().code, ErrorCode::kUnavailable);
}

TEST(FrameTest, AnEndInTheMiddleOfAFrameIsAnError) {
  Pair pair;
  ASSERT_EQ(send(pair.a.Get(), "\5\0\0\0abc", 7, 0), 7);
  pair.a.Reset();
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(1000))).error().code, ErrorCode::kUnavailable);
}

TEST(FrameTest, AClientRefusesALengthOverTheLimit) {
  Pair pair;
  ASSERT_EQ(send(pair.a.Get(), "\1\0\0\x10", 4, 0), 4);
  EXPECT_EQ(ReceiveFrame(pair.b, In(milliseconds(1000))).error().code, ErrorCode::kCorrupt);
}

TEST(FrameReaderTest, GivesFramesHoweverTheBytesAreCut) {
  FrameWriter writer;
  ASSERT_TRUE(writer.Add("one") && writer.Add("") && writer.Add("three"));
  Pair pair;
  ASSERT_TRUE(writer.Flush(pair.a).value());
  char bytes[64];
  const ssize_t size = recv(pair.b.Get(), bytes, sizeof bytes, 0);
  FrameReader reader;
  std::vector<std::string> frames;
  for (ssize_t i = 0; i < size; ++i) {
    reader.Feed({bytes + i, 1});
    while (auto frame = reader.Next().value()) frames.push_back(*frame);
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"one", "", "three"}));
}

TEST(FrameReaderTest, RefusesALengthOverItsLimitBeforeTheBytesCome) {
  FrameReader reader(10);
  reader.Feed(std::string_view("\x0b\0\0\0", 4));
  EXPECT_EQ(reader.Next().error().code, ErrorCode::kCorrupt);
}

TEST(FrameReaderTest, SaysWhenTheOtherEndHasClosed) {
  Pair pair;
  FrameReader reader;
  EXPECT_TRUE(reader.FeedFrom(pair.b).value());
  ASSERT_TRUE(SendFrame(pair.a, "last", In(milliseconds(1000))));
  pair.a.Reset();
  while (reader.FeedFrom(pair.b).value()) {
  }
  EXPECT_EQ(reader.Next().value(), "last");
}

TEST(FrameWriterTest, KeepsWhatTheSocketDoesNotTakeYet) {
  Pair pair;
  FrameWriter writer;
  FrameReader reader;
  const std::string big(5 << 20, 'y');
  ASSERT_TRUE(writer.Add(big));
  EXPECT_FALSE(writer.Flush(pair.a).value());
  EXPECT_GT(writer.Pending(), 0u);
  std::optional<std::string> frame;
  while (!frame) {
    ASSERT_TRUE(reader.FeedFrom(pair.b).value());
    frame = reader.Next().value();
    (void)writer.Flush(pair.a).value();
  }
  EXPECT_TRUE(*frame == big);
  EXPECT_EQ(writer.Pending(), 0u);
}

TEST(FrameWriterTest, AClosedPeerIsAnErrorAndRaisesNoSignal) {
  Pair pair;
  FrameWriter writer;
  ASSERT_TRUE(writer.Add("x"));
  pair.b.Reset();
  EXPECT_FALSE(writer.Flush(pair.a));
}

}  // namespace
}  // namespace overcap
