// SPDX-License-Identifier: Apache-2.0
#include "launch/local/node.h"

#include <gtest/gtest.h>
#include <map>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/link/messages.h"

namespace overcap {
namespace {

using node_link::Channel;

// A node in a process of its own, as `overcap launch-node` is, and the head's end of its link.
class Node {
 public:
  Node() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const auto status = RunLaunchNode({Fd(ends[1]), Fd()}, PosixClock());
      _exit(status ? *status : 99);
    }
    close(ends[1]);
    channel_ = std::make_unique<Channel>(node_link::Ends{Fd(ends[0]), Fd()}, Channel::Preamble::kExpected);
  }
  ~Node() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  void Send(const node_link::ToNode& message) {
    channel_->Send(node_link::Encode(message));
    EXPECT_TRUE(channel_->Flush());
  }
  void HangUp() { channel_.reset(); }

  // The next message, as its frame; "" when the node has closed or says nothing for ten seconds.
  std::string Next() {
    for (bool open = true;;) {
      const auto frame = channel_->Next();
      if (frame && *frame) return **frame;
      if (!open) return "";
      pollfd entry{channel_->ReadFd(), POLLIN, 0};
      if (poll(&entry, 1, 10'000) <= 0) return "";
      open = channel_->Read();
    }
  }
  // Everything up to the end; output is put together by rank.
  std::vector<std::string> Rest(std::map<int, std::string>* output) {
    std::vector<std::string> frames;
    for (std::string frame; !(frame = Next()).empty();) {
      const auto message = node_link::DecodeToHead(frame);
      EXPECT_TRUE(message.has_value());
      if (const auto* piece = std::get_if<node_link::Output>(&*message)) {
        (*output)[piece->rank] += piece->bytes;
      } else {
        frames.push_back(frame);
      }
    }
    return frames;
  }
  int Status() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
};

node_link::Start StartOf(const std::string& script, int ranks = 2) {
  node_link::Start start;
  start.node_rank = 1;
  start.first_rank = 4;
  start.ranks = ranks;
  start.world_size = 8;
  start.command = {"/bin/sh", "-c", script};
  start.env = {"PATH=/usr/bin:/bin", "RANK=77", "OWN=value"};
  start.folder = "/";
  start.master_addr = "n0";
  start.master_port = 1234;
  start.grace_us = 500'000;
  return start;
}

node_link::Ended EndedIn(const std::string& frame) {
  return std::get<node_link::Ended>(*node_link::DecodeToHead(frame));
}

TEST(LaunchNode, SaysHelloFirst) {
  Node node;
  const auto hello = std::get<node_link::Hello>(*node_link::DecodeToHead(node.Next()));
  EXPECT_EQ(hello.protocol, node_link::kProtocol);
  EXPECT_EQ(hello.version, OVERCAP_VERSION);
  EXPECT_FALSE(hello.host.empty());
  EXPECT_GT(hello.free_port, 0);
}

TEST(LaunchNode, RunsItsRanksWithTheirVariablesAndSaysWhenNothingIsLeft) {
  Node node;
  (void)node.Next();
  node.Send(
      StartOf("echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR $MASTER_PORT "
              "$OWN; pwd >&2"));
  std::map<int, std::string> output;
  const std::vector<std::string> frames = node.Rest(&output);
  ASSERT_EQ(frames.size(), 5u);  // two begun, two ended, nothing left
  EXPECT_EQ(frames[0][0], 'B');
  EXPECT_EQ(frames[1][0], 'B');
  EXPECT_EQ(EndedIn(frames[2]).exit_status, 0);
  EXPECT_EQ(frames[4], "X{}");
  EXPECT_NE(output[4].find("4 0 8 2 1 n0 1234 value\n"), std::string::npos);
  EXPECT_NE(output[5].find("5 1 8 2 1 n0 1234 value\n"), std::string::npos);
  EXPECT_NE(output[5].find("/\n"), std::string::npos);
  EXPECT_EQ(node.Status(), 0);
}

TEST(LaunchNode, TellsTheRankThatFailedBeforeThoseThatItStopped) {
  Node node;
  (void)node.Next();
  node.Send(StartOf("[ $RANK = 5 ] && exit 7; exec sleep 100"));
  std::map<int, std::string> output;
  const std::vector<std::string> frames = node.Rest(&output);
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(EndedIn(frames[2]), (node_link::Ended{5, 7, 0, true, false, ""}));
  EXPECT_EQ(EndedIn(frames[3]), (node_link::Ended{4, 128 + SIGTERM, SIGTERM, true, false, ""}));
}

TEST(LaunchNode, SaysWhyARankCannotBeStarted) {
  Node node;
  (void)node.Next();
  node_link::Start start = StartOf("true");
  start.folder = "/no/such/folder";
  node.Send(start);
  std::map<int, std::string> output;
  const std::vector<std::string> frames = node.Rest(&output);
  ASSERT_GE(frames.size(), 2u);
  EXPECT_EQ(EndedIn(frames[0]).rank, 4);
  EXPECT_NE(EndedIn(frames[0]).reason.find("/no/such/folder"), std::string::npos);
  EXPECT_EQ(frames.back(), "X{}");
}

TEST(LaunchNode, StartsNothingAfterAStop) {
  Node node;
  (void)node.Next();
  node.Send(node_link::Stop{0});
  EXPECT_EQ(node.Next(), "X{}");
  EXPECT_EQ(node.Status(), 0);
}

TEST(LaunchNode, StopsWhenItIsToldToAndKillsAtOnceWithoutGrace) {
  Node node;
  (void)node.Next();
  node_link::Start start = StartOf("trap '' TERM; echo ready; while :; do sleep 0.01; done", 1);
  start.grace_us = 600'000'000;
  node.Send(start);
  for (std::string frame = "x"; frame[0] != 'O';) frame = node.Next() + " ";
  node.Send(node_link::Stop{0});
  std::map<int, std::string> output;
  const std::vector<std::string> frames = node.Rest(&output);
  EXPECT_EQ(EndedIn(frames[0]).signal, SIGKILL);
  EXPECT_EQ(frames.back(), "X{}");
}

TEST(LaunchNode, CollectsTheStacksOfItsRanks) {
  Node node;
  (void)node.Next();
  node.Send(StartOf("echo ready; exec sleep 100", 1));
  for (std::string frame = "x"; frame[0] != 'O';) frame = node.Next() + " ";
  node.Send(node_link::Stacks{});
  const auto stack = std::get<node_link::Stack>(*node_link::DecodeToHead(node.Next()));
  EXPECT_EQ(stack.rank, 4);
  EXPECT_NE(stack.text.find("state"), std::string::npos);
}

TEST(LaunchNode, LeavesNothingWhenTheHeadIsGone) {
  Node node;
  (void)node.Next();
  node.Send(StartOf("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 0.01; done", 1));
  pid_t grandchild = 0;
  while (grandchild == 0) {
    const std::string frame = node.Next();
    ASSERT_FALSE(frame.empty());
    if (frame[0] == 'O') grandchild = atoi(frame.substr(6).c_str());
  }
  ASSERT_GT(grandchild, 1);
  node.HangUp();
  EXPECT_EQ(node.Status(), 0);
  EXPECT_NE(kill(grandchild, 0), 0);
}

TEST(LaunchNode, LetsRanksWaitForASlowHeadAndLosesNothing) {
  Node node;
  (void)node.Next();
  node.Send(StartOf("head -c 20000000 /dev/zero", 1));
  std::map<int, std::string> output;
  (void)node.Rest(&output);
  EXPECT_EQ(output[4].size(), 20'000'000u);
}

}  // namespace
}  // namespace overcap
