// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.h"

#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/unix_socket.h"
#include "sys/clock.h"
#include "sys/fake_files.h"
#include "sys/remove_tree.h"
#include "sys/testing/in_child.h"

namespace overcap {
namespace {

constexpr uid_t kAnn = 61001;

// Any request takes longer than a user has in one turn.
class HurriedCallers : public Callers {
 public:
  Result<void> Admits(uid_t) override { return {}; }
  Result<Asker> Identify(const Fd& connection) override {
    OC_TRY(uid, PeerUid(connection));
    Asker asker;
    asker.only_user = false;
    asker.user = "ann";
    asker.owner.uid = uid;
    return asker;
  }
  CallerBounds Bounds() const override {
    return {.connections = 8, .connections_when_full = 8, .requests_per_turn = 16, .turn_us = 1};
  }
};

// The reply to a request of a user who is not root.
std::string Ask(const std::string& socket, std::string_view request) {
  return InChild([&] {
    if (geteuid() == 0 && setresuid(kAnn, kAnn, kAnn) != 0) return std::string("cannot become a user");
    const auto connected = ConnectUnix(socket, std::chrono::seconds(5));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    if (!connected || !SendFrame(*connected, request, deadline)) return std::string("no engine");
    return ReceiveFrame(*connected, deadline).value_or("no reply");
  });
}

TEST(Server, AWaitIsAnsweredInTheNextTurnWhenItsUserHasNoTimeLeftInThisOne) {
  std::string folder = "/tmp/overcap-server-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string socket = folder + "/daemon.sock";
  auto listener = ListenUnixForAll(socket);
  ASSERT_TRUE(listener) << listener.error().message;
  const pid_t server = fork();
  if (server == 0) {
    PosixClock clock;
    FakeFiles files(1);
    HurriedCallers callers;
    PosixAgents agents("/bin/false", folder + "/log", 1);
    Engine engine(clock, files, agents, "/overcap", Machine());
    Api api(engine, clock, EngineInfo());
    Server serving(engine, api, agents, callers, clock, *std::move(listener), 0);
    _exit(files.MakeFolders("/overcap") && engine.Open() && serving.Run() ? 0 : 1);
  }
  EXPECT_EQ(Ask(socket, R"({"op":"wait","ids":[],"timeout_s":1000})"), R"({"ok":{"done":true,"jobs":[]}})");
  int status = 0;
  kill(server, SIGTERM);
  EXPECT_EQ(waitpid(server, &status, 0), server);
  EXPECT_EQ(status, 0);
  (void)RemoveTree(folder);
}

}  // namespace
}  // namespace overcap
