// SPDX-License-Identifier: Apache-2.0
#include "launch/link/head.h"

#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap::node_link {
namespace {

using Cause = AttemptEnd::Cause;

// The other end of a link, played by a thread.
class FakeNode {
 public:
  explicit FakeNode(Fd fd) : channel_({std::move(fd), Fd()}) {}

  void Say(const ToHead& message) { SayRaw(Encode(message)); }
  void SayRaw(std::string_view frame) {
    channel_.Send(frame);
    while (channel_.Flush() && channel_.Pending() > 0) Wait(POLLOUT);
  }
  void Hello(int node_rank = -1, const std::string& host = "") {
    Say(node_link::Hello{kProtocol, "1", host, "10.0.0.1", 1000, node_rank});
  }
  // The next frame of this type; "" when the head has closed.
  std::string Await(char type) {
    for (bool open = true; open;) {
      for (auto frame = channel_.Next(); frame && *frame; frame = channel_.Next()) {
        if ((**frame)[0] == type) return **frame;
      }
      if (!Wait(POLLIN)) return "";
      open = channel_.Read();
    }
    return "";
  }
  void EndWell(int rank) { Say(Ended{rank, 0, 0, true, false, ""}); }
  void Leave() { Say(NothingLeft{}); }

 private:
  bool Wait(short events) {
    pollfd entry{channel_.ReadFd(), events, 0};
    return poll(&entry, 1, 20'000) > 0;
  }
  Channel channel_;
};

using Script = std::function<void(FakeNode*)>;

class FakeTransport : public Transport {
 public:
  std::vector<Script> scripts;
  bool by_hello = false;  // the head does not know whose link it is
  std::vector<std::string> child;

  Result<void> Begin(Head* head) override {
    for (size_t i = 0; i < scripts.size(); ++i) {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) abort();
      head->AddLink({Fd(ends[0]), Fd()}, by_hello ? -1 : static_cast<int>(i), Channel::Preamble::kNone);
      threads_.emplace_back([script = scripts[i], fd = ends[1]] {
        FakeNode node{Fd(fd)};
        script(&node);
      });
    }
    if (!child.empty()) StartChild(head);
    return {};
  }
  Result<std::vector<std::string>> FirstFrames(const std::vector<node_link::Hello>& hellos) override {
    return std::vector<std::string>(hellos.size(),
                                    Encode(ToNode(Place{hellos[0].address, hellos[0].free_port})));
  }
  ~FakeTransport() override {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void StartChild(Head* head) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    const Fd write_end(ends[1]);
    SpawnRequest request;
    request.argv = child;
    request.env = Variables::OfThisProcess().entries();
    request.stdout_fd = request.stderr_fd = write_end.Get();
    request.want_pidfd = true;
    head->AddChild({"launcher", Spawn(request).value(), Fd(ends[0]), -1, ""});
  }
  std::vector<std::thread> threads_;
};

// Two hosts with one rank each.
class HeadTest : public testing::Test {
 protected:
  HeadTest() {
    char name[] = "/tmp/overcap-head-XXXXXX";
    attempt_.log_folder = mkdtemp(name);
    attempt_.plan.hosts = {{"n0", 0, 1, 0}, {"n1", 1, 1, 0}};
    attempt_.plan.world_size = 2;
  }
  ~HeadTest() override { (void)PosixFiles().RemoveTree(attempt_.log_folder); }

  AttemptEnd Run() {
    RankLogs logs = RankLogs::Make(attempt_.log_folder, attempt_.plan.world_size, Tee::kNone).value();
    HeadSignals signals = HeadSignals::Make().value();
    const PosixClock clock;
    return Head(attempt_, &logs, clock, &signals, &transport_).Run();
  }
  std::string File(const std::string& name) const {
    return PosixFiles().Read(attempt_.log_folder + "/" + name).value_or("(none)");
  }

  Attempt attempt_;
  FakeTransport transport_;
};

Script Good(int rank, const std::string& text) {
  return [=](FakeNode* node) {
    node->Hello();
    (void)node->Await('P');
    node->Say(Begun{rank, 123});
    node->Say(Output{rank, 1, text});
    node->EndWell(rank);
    node->Leave();
  };
}

// Ends only when it is told to.
Script Obedient(int rank, std::string* stop) {
  return [=](FakeNode* node) {
    node->Hello();
    (void)node->Await('P');
    node->Say(Begun{rank, 123});
    *stop = node->Await('T');
    node->Say(Ended{rank, 143, 15, true, false, ""});
    node->Leave();
  };
}

TEST_F(HeadTest, KeepsTheOutputOfAllRanksAndEndsWithThem) {
  transport_.scripts = {Good(0, "zero\n"), Good(1, "one\n")};
  EXPECT_EQ(Run().cause, Cause::kDone);
  EXPECT_EQ(File("rank-0.log"), "zero\n");
  EXPECT_EQ(File("rank-1.log"), "one\n");
}

TEST_F(HeadTest, FindsTheHostOfALinkInItsHello) {
  transport_.by_hello = true;
  const auto at = [](int rank, int node_rank, const std::string& name) {
    return [=](FakeNode* node) {
      node->Hello(node_rank, name);
      (void)node->Await('P');
      node->EndWell(rank);
      node->Leave();
    };
  };
  transport_.scripts = {at(1, 1, "whatever"), at(0, -1, "n0.example.org"), [](FakeNode* node) {
                          node->Hello(7, "n0");  // none of ours
                          EXPECT_EQ(node->Await('P'), "");
                        }};
  EXPECT_EQ(Run().cause, Cause::kDone);
}

TEST_F(HeadTest, TellsTheOthersToStopWhenARankFails) {
  std::string stop;
  transport_.scripts = {Obedient(0, &stop), [](FakeNode* node) {
                          node->Hello();
                          (void)node->Await('P');
                          node->Say(Ended{1, 9, 0, true, true, "why"});
                          node->Leave();
                        }};
  attempt_.grace_us = 1'500'000;
  const AttemptEnd end = Run();
  EXPECT_EQ(end.cause, Cause::kRankFailed);
  EXPECT_EQ(end.first->rank, 1);
  EXPECT_EQ(end.first->host, "n1");
  EXPECT_EQ(end.first->end.exit_status, 9);
  EXPECT_TRUE(end.first->out_of_memory);
  EXPECT_EQ(end.first->reason, "why");
  EXPECT_EQ(stop, Encode(ToNode(Stop{1'500'000})));
}

TEST_F(HeadTest, NamesAHostWhoseLinkClosesTooEarly) {
  std::string stop;
  transport_.scripts = {Obedient(0, &stop), [](FakeNode* node) {
                          node->Hello();
                          (void)node->Await('P');
                        }};
  const AttemptEnd end = Run();
  EXPECT_EQ(end.cause, Cause::kHostFailed);
  EXPECT_EQ(end.bad_hosts, std::vector<std::string>{"n1"});
  EXPECT_EQ(end.message, "host 'n1' is lost: its connection was closed");
  EXPECT_FALSE(stop.empty());
}

TEST_F(HeadTest, TrustsNoHostThatSpeaksNonsense) {
  const std::vector<std::string> nonsense = {
      "Z", "B{\"rank\":0}", "B{\"rank\":2}", "H{}", "", "X[]", std::string("O\1\0\0\0\3", 6)};
  for (const std::string& frame : nonsense) {
    std::string stop;
    FakeTransport fresh;
    fresh.scripts = {Obedient(0, &stop), [frame](FakeNode* node) {
                       node->Hello();
                       (void)node->Await('P');
                       node->SayRaw(frame);
                       EXPECT_EQ(node->Await('?'), "");
                     }};
    RankLogs logs = RankLogs::Make(attempt_.log_folder, 2, Tee::kNone).value();
    HeadSignals signals = HeadSignals::Make().value();
    const PosixClock clock;
    const AttemptEnd end = Head(attempt_, &logs, clock, &signals, &fresh).Run();
    EXPECT_EQ(end.cause, Cause::kHostFailed) << frame;
    EXPECT_EQ(end.bad_hosts, std::vector<std::string>{"n1"}) << frame;
    EXPECT_FALSE(stop.empty());
  }
}

TEST_F(HeadTest, WritesWhereEachRankWasWhenAllAreSilent) {
  attempt_.idle_us = 100'000;
  const auto silent = [](int rank) {
    return [rank](FakeNode* node) {
      node->Hello();
      (void)node->Await('P');
      node->Say(Begun{rank, 1});
      (void)node->Await('C');
      node->Say(Stack{rank, StrCat("in step ", rank)});
      (void)node->Await('T');
      node->Leave();
    };
  };
  transport_.scripts = {silent(0), silent(1)};
  EXPECT_EQ(Run().cause, Cause::kIdle);
  EXPECT_EQ(File("stacks.txt"), "== rank 0 on host 'n0'\nin step 0\n\n== rank 1 on host 'n1'\nin step 1\n\n");
}

TEST_F(HeadTest, SaysWhatALauncherSaidThatStartedNothing) {
  transport_.child = {"/bin/sh", "-c", "echo first; printf 'no such queue' >&2; exit 3"};
  const AttemptEnd end = Run();
  EXPECT_EQ(end.cause, Cause::kCannotRun);
  EXPECT_EQ(end.message, "'launcher' ended with exit status 3: no such queue");
  EXPECT_EQ(File("launcher.log"), "launcher: first\nlauncher: no such queue\n");
}

TEST_F(HeadTest, EndsALauncherWhoseHostsDoNotAnswer) {
  attempt_.connect_us = 200'000;
  transport_.child = {"/bin/sleep", "1000"};
  const AttemptEnd end = Run();
  EXPECT_EQ(end.cause, Cause::kHostFailed);
  EXPECT_EQ(end.code, ErrorCode::kUsage);
  EXPECT_EQ(end.bad_hosts.size(), 2u);
}

}  // namespace
}  // namespace overcap::node_link
