// SPDX-License-Identifier: Apache-2.0
// The engine's loop: one thread, one epoll; takes what is ready, lets the engine have its turn, then sends
// replies.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/api.h"
#include "daemon/callers.h"
#include "daemon/engine.h"
#include "daemon/posix_agents.h"
#include "net/frame.h"
#include "sys/fd.h"

namespace overcap {

class Server {
 public:
  Server(Engine& engine, Api& api, PosixAgents& agents, Callers& callers, const Clock& clock, Fd listener,
         int idle_exit_seconds);
  // Until a client says stop, TERM or INT comes, or nothing happens for the idle time. An error of the
  // engine's turn ends it at once: no reply of that turn is sent.
  Result<void> Run();

 private:
  struct Connection {
    Connection(Fd socket, Asker who, uint32_t max_request)
        : fd(std::move(socket)), asker(std::move(who)), reader(max_request) {}
    Fd fd;
    Asker asker;
    FrameReader reader;
    FrameWriter writer;
    std::vector<std::string> replies;  // sent after the turn
    bool waiting = false;              // a deferred request is open; later ones are read after it
    uint32_t armed = 0;                // what epoll is asked for
    int64_t moved_us = 0;              // when something was last read or written
  };
  struct Waiter {
    int fd;
    WaitRequest wait;
  };

  Result<void> Arm(int fd, uint32_t events, int operation);
  Result<void> Prepare();
  void AcceptAll();
  void Admit(Fd socket, Asker asker);
  // Of one that is not root.
  bool IsBounded(const Connection& connection) const;
  size_t UnreadBytes(int64_t uid) const;
  bool MayAnswer(const Connection& connection) const;
  void Rearm(Connection& connection);
  void TakeBacklog();
  bool AnyBacklogReady() const;
  void CloseStalled();
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
  Callers& callers_;
  const CallerBounds bounds_;
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
  std::map<int64_t, std::set<int>> sockets_of_;  // by user
  std::set<int> backlog_;                        // connections whose requests wait for the next turn
  int64_t look_for_stalled_us_ = 0;
  std::list<Waiter> waiters_;
  std::vector<int> touched_;  // connections with replies of this turn
};

}  // namespace overcap
