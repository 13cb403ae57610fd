// SPDX-License-Identifier: Apache-2.0
// The engine's loop: one thread, one epoll; takes what is ready, lets the engine have its turn, then sends
// replies.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
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
    Connection(Fd socket, uid_t who, uint32_t max_request)
        : fd(std::move(socket)), uid(who), reader(max_request) {}
    Fd fd;
    uid_t uid;
    std::optional<Asker> asker;  // once it has asked something
    FrameReader reader;
    FrameWriter writer;
    std::vector<std::string> replies;  // sent after the turn
    bool waiting = false;              // a deferred request is open; later ones are read after it
    bool queued = false;               // it is in the backlog
    uint32_t armed = 0;                // what epoll is asked for
    int64_t moved_us = 0;              // when something was last read, answered or written
    size_t held = 0, unread = 0;       // what it has added to the sums of its user
  };
  // What one user takes of the engine now.
  struct User {
    std::set<int> sockets;
    size_t held = 0, unread = 0;  // bytes of incomplete requests and of unread replies, over all connections
    uint64_t turn = 0;            // in which a request of theirs was last handled
    int64_t spent_us = 0;         // in that turn
  };
  struct Waiter {
    int fd;
    WaitRequest wait;
  };

  Result<void> Arm(int fd, uint32_t events, int operation);
  Result<void> Prepare();
  void AcceptSome();
  void Admit(Fd socket);
  void Refuse(Fd socket, const std::string& reply);
  // Whether there is a place for one more connection of this user. Checked before anything else.
  Result<void> CheckRoom(uid_t uid);
  // Makes room by closing the connection that has been idle for longest; false: none is idle.
  bool CloseIdlest();
  // Of one that is not root.
  bool IsBounded(uid_t uid) const { return bounds_.connections > 0 && uid != 0; }
  bool MayAnswer(const Connection& connection) const;
  bool HasTime(uid_t uid) const;
  void Spend(uid_t uid, int64_t us);
  // Brings the sums of the connection's user up to date.
  void Count(Connection& connection);
  void Postpone(Connection& connection);
  void Rearm(Connection& connection);
  void TakeEndedAgents();
  void TakeBacklog();
  bool AnyBacklogReady() const;
  void CloseStalled();
  void SetAccepting(bool accepting);
  void ReadFrom(Connection& connection);
  bool Introduce(Connection& connection);
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
  std::map<uid_t, User> users_;
  std::deque<int> backlog_;              // connections whose requests wait for the next turn, in their order
  std::deque<AgentToken> ended_agents_;  // not yet dealt with
  // Refused connections and when they are closed. Not at once: a client that is still sending its request
  // must be able to read the refusal.
  std::deque<std::pair<Fd, int64_t>> refused_;
  uint64_t turn_ = 0;
  int64_t look_for_stalled_us_ = 0;
  std::list<Waiter> waiters_;
  bool waiters_left_ = false;  // some were not looked at: their users had no time left in this turn
  std::vector<int> touched_;   // connections with replies of this turn
};

}  // namespace overcap
