// SPDX-License-Identifier: Apache-2.0
// The engine's loop: one thread, one epoll; takes what is ready, lets the engine have its turn, then sends
// replies.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/api.h"
#include "daemon/engine.h"
#include "daemon/posix_agents.h"
#include "net/frame.h"
#include "sys/fd.h"

namespace overcap {

class Server {
 public:
  Server(Engine& engine, Api& api, PosixAgents& agents, const Clock& clock, Fd listener,
         int idle_exit_seconds);
  // Until a client says stop, TERM or INT comes, or nothing happens for the idle time. An error of the
  // engine's turn ends it at once: no reply of that turn is sent.
  Result<void> Run();

 private:
  struct Connection {
    Fd fd;
    FrameReader reader;
    FrameWriter writer;
    std::vector<std::string> replies;  // sent after the turn
    bool waiting = false;              // a deferred request is open; later ones are read after it
    bool writable_armed = false;
  };
  struct Waiter {
    int fd;
    WaitRequest wait;
  };

  Result<void> Arm(int fd, uint32_t events, int operation);
  Result<void> Prepare();
  void AcceptAll();
  void SetAccepting(bool accepting);
  void ReadFrom(Connection& connection);
  void HandleFrames(Connection& connection);
  void AnswerWaiters();
  void SendReplies();
  void Flush(Connection& connection);
  void Close(int fd);
  int TimeoutMs() const;
  bool IdleTooLong() const;

  Engine& engine_;
  Api& api_;
  PosixAgents& agents_;
  const Clock& clock_;
  Fd listener_;
  Fd epoll_;
  Fd signals_;
  size_t max_connections_;
  bool accepting_ = true;
  int64_t idle_exit_us_;
  int64_t last_busy_us_ = 0;
  bool stop_ = false;
  std::map<int, std::unique_ptr<Connection>> connections_;
  std::list<Waiter> waiters_;
  std::vector<int> touched_;  // connections with replies of this turn
};

}  // namespace overcap
