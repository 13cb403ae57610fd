// SPDX-License-Identifier: Apache-2.0
#include "launch/link/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/link/messages.h"

namespace overcap::node_link {
namespace {

struct Two {
  Channel a, b;
};

Two OverSocket(Channel::Preamble preamble = Channel::Preamble::kNone) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Channel({Fd(ends[0]), Fd()}), Channel({Fd(ends[1]), Fd()}, preamble)};
}

Two OverPipes() {
  int there[2], back[2];
  EXPECT_EQ(pipe2(there, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(back, O_CLOEXEC), 0);
  return {Channel({Fd(back[0]), Fd(there[1])}), Channel({Fd(there[0]), Fd(back[1])})};
}

std::string NextOf(Channel* channel) {
  const auto frame = channel->Next();
  return !frame ? frame.error().message : frame->value_or("(none)");
}

TEST(Channel, CarriesFramesBothWaysOverPipesAndOverOneSocket) {
  Two all[2] = {OverSocket(), OverPipes()};
  for (Two& two : all) {
    two.a.Send("one");
    two.a.Send("");
    two.b.Send("back");
    EXPECT_TRUE(two.a.Flush() && two.b.Flush());
    EXPECT_TRUE(two.a.Read() && two.b.Read());
    EXPECT_EQ(NextOf(&two.b), "one");
    EXPECT_EQ(NextOf(&two.b), "");
    EXPECT_EQ(NextOf(&two.b), "(none)");
    EXPECT_EQ(NextOf(&two.a), "back");
  }
}

TEST(Channel, SendsOutputAsTheMessageOfIt) {
  Two two = OverSocket();
  two.a.SendOutput(70'000, 2, "text");
  EXPECT_TRUE(two.a.Flush() && two.b.Read());
  EXPECT_EQ(NextOf(&two.b), Encode(ToHead(Output{70'000, 2, "text"})));
}

TEST(Channel, DropsWhatComesBeforeThePreamble) {
  Two two = OverSocket(Channel::Preamble::kExpected);
  two.a.SendRaw("Welcome to n1!\n");
  two.a.Flush();
  EXPECT_TRUE(two.b.Read());
  EXPECT_EQ(NextOf(&two.b), "(none)");
  two.a.SendRaw(kPreamble.substr(0, 5));
  two.a.Flush();
  EXPECT_TRUE(two.b.Read());
  EXPECT_EQ(NextOf(&two.b), "(none)");
  two.a.SendRaw(kPreamble.substr(5));
  two.a.Send("hello");
  two.a.Flush();
  EXPECT_TRUE(two.b.Read());
  EXPECT_EQ(NextOf(&two.b), "hello");
}

TEST(Channel, GivesUpWhenNothingButNoiseComes) {
  Two two = OverSocket(Channel::Preamble::kExpected);
  two.a.SendRaw(std::string(70'000, 'x'));
  two.a.Flush();
  two.b.Read();
  EXPECT_EQ(NextOf(&two.b), "its login scripts print too much to standard output");
}

TEST(Channel, GivesTheLastFramesAfterTheOtherEndHasClosed) {
  Two two = OverSocket();
  two.a.Send("last");
  two.a.Flush();
  Channel(std::move(two.a));
  EXPECT_FALSE(two.b.Read());
  EXPECT_EQ(NextOf(&two.b), "last");
}

TEST(Channel, KeepsWhatThePipeDoesNotTakeAndNeverWaits) {
  Two two = OverPipes();
  const std::string big(3 << 20, 'z');
  two.a.Send(big);
  EXPECT_TRUE(two.a.Flush());
  EXPECT_GT(two.a.Pending(), 0u);
  std::string got = "(none)";
  for (int i = 0; i < 10'000 && got == "(none)"; ++i) {
    EXPECT_TRUE(two.b.Read());
    EXPECT_TRUE(two.a.Flush());
    got = NextOf(&two.b);
  }
  EXPECT_TRUE(got == big);
  EXPECT_EQ(two.a.Pending(), 0u);
}

TEST(Channel, SaysThatNobodyReadsAnyMore) {
  signal(SIGPIPE, SIG_IGN);
  Two two = OverPipes();
  Channel(std::move(two.b));
  two.a.Send("for nobody");
  EXPECT_FALSE(two.a.Flush());
  EXPECT_EQ(two.a.Pending(), 0u);
}

}  // namespace
}  // namespace overcap::node_link
