// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "net/unix_socket.h"

namespace overcap {
namespace {

constexpr size_t kMaxConnections = 4096;
constexpr int64_t kAcceptPauseUs = 100'000;
constexpr int64_t kStallLooks = 12;  // within the time after which a connection is closed
constexpr int kMostAccepts = 64;     // in one turn
constexpr size_t kMostRefused = 64;
constexpr int64_t kRefusedStaysUs = 200'000;
constexpr int64_t kMostAgentsUs = 100'000;  // of one turn, for agents that have ended

// Clients look for `word`: they send such a request again.
std::string CrowdedReply(const Error& error) {
  std::string reply = ErrorReply(error);
  return reply.insert(reply.size() - 2, ",\"word\":\"crowded\"");
}

tl::unexpected<Error> Crowded(std::string message) {
  return Fail(ErrorCode::kUnavailable, std::move(message),
              "try again, or end some of the commands that wait");
}

// Half of what the process may open: the rest is for agents and files.
size_t ConnectionLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return std::min<size_t>(kMaxConnections, limit.rlim_cur / 2);
}

}  // namespace

Server::Server(Engine& engine, Api& api, PosixAgents& agents, Callers& callers, const Clock& clock,
               Fd listener, int idle_exit_seconds)
    : engine_(engine),
      api_(api),
      agents_(agents),
      callers_(callers),
      bounds_(callers.Bounds()),
      clock_(clock),
      listener_(std::move(listener)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      max_connections_(ConnectionLimit()),
      idle_exit_us_(idle_exit_seconds * int64_t{1'000'000}) {}

Result<void> Server::Arm(int fd, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.Get(), operation, fd, &event) != 0) return Fail(ErrnoError(errno, "epoll_ctl"));
  return {};
}

Result<void> Server::Prepare() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0 || !signals_) return Fail(ErrnoError(errno, "signalfd"));
  OC_TRY_VOID(Arm(signals_.Get(), EPOLLIN, EPOLL_CTL_ADD));
  OC_TRY_VOID(Arm(listener_.Get(), EPOLLIN, EPOLL_CTL_ADD));
  return Arm(agents_.EndedFd(), EPOLLIN, EPOLL_CTL_ADD);
}

Result<void> Server::Run() {
  OC_TRY_VOID(Prepare());
  last_busy_us_ = clock_.MonotonicUs();
  OC_TRY_VOID(engine_.Turn());
  while (!stop_ && !IdleTooLong()) {
    std::array<epoll_event, 128> events;
    const int count = epoll_wait(epoll_.Get(), events.data(), static_cast<int>(events.size()), TimeoutMs());
    if (count < 0 && errno != EINTR) return Fail(ErrnoError(errno, "epoll_wait"));
    ++turn_;
    while (!refused_.empty() && refused_.front().second <= clock_.MonotonicUs()) refused_.pop_front();
    if (connections_.size() < max_connections_) SetAccepting(true);
    TakeBacklog();
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == listener_.Get()) {
        AcceptSome();
      } else if (fd == signals_.Get()) {
        stop_ = true;
      } else if (fd == agents_.EndedFd()) {
        for (const AgentToken& token : agents_.TakeEnded()) ended_agents_.push_back(token);
      } else if (auto found = connections_.find(fd); found != connections_.end()) {
        if (events[static_cast<size_t>(i)].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) ReadFrom(*found->second);
        if (connections_.contains(fd)) Flush(*found->second);
      }
    }
    TakeEndedAgents();
    OC_TRY_VOID(engine_.Turn([this] { SendReplies(); }));
    AnswerWaiters();
    SendReplies();
    CloseStalled();
  }
  return {};
}

// At its limit of descriptors the engine stops listening for a while: clients wait, nothing spins.
void Server::SetAccepting(bool accepting) {
  if (accepting == accepting_) return;
  if (Arm(listener_.Get(), accepting ? EPOLLIN : 0u, EPOLL_CTL_MOD)) accepting_ = accepting;
}

// At most a few in each turn, so that others are answered however many come.
void Server::AcceptSome() {
  for (int i = 0; i < kMostAccepts; ++i) {
    // An engine without bounds lets new clients wait. One with bounds has to accept them to know whose they
    // are.
    const bool full = connections_.size() >= max_connections_;
    if (full && bounds_.connections == 0 && !CloseIdlest()) return SetAccepting(false);
    auto accepted = AcceptUnix(listener_);
    if (!accepted) return SetAccepting(false);
    if (!*accepted) return;
    Admit(*std::move(*accepted));
  }
}

void Server::Admit(Fd socket) {
  const int fd = socket.Get();
  const auto uid = PeerUid(socket);
  if (!uid) return;
  if (const auto room = CheckRoom(*uid); !room) return Refuse(std::move(socket), CrowdedReply(room.error()));
  if (const auto admitted = callers_.Admits(*uid); !admitted) {
    // An engine of one user does not answer others.
    if (bounds_.connections > 0) Refuse(std::move(socket), ErrorReply(admitted.error()));
    return;
  }
  const uint32_t most = IsBounded(*uid) && bounds_.request_bytes > 0 ? bounds_.request_bytes : kMaxFrameBytes;
  auto connection = std::make_unique<Connection>(std::move(socket), *uid, most);
  connection->armed = EPOLLIN;
  connection->moved_us = clock_.MonotonicUs();
  if (!Arm(fd, EPOLLIN, EPOLL_CTL_ADD)) return;
  users_[*uid].sockets.insert(fd);
  // The request is usually there already: saves one round through epoll.
  Connection& added = *(connections_[fd] = std::move(connection));
  ReadFrom(added);
}

void Server::Refuse(Fd socket, const std::string& reply) {
  FrameWriter writer;
  (void)writer.Add(reply);
  (void)writer.Flush(socket);
  if (refused_.size() >= kMostRefused) refused_.pop_front();
  refused_.emplace_back(std::move(socket), clock_.MonotonicUs() + kRefusedStaysUs);
}

Result<void> Server::CheckRoom(uid_t uid) {
  const size_t places =
      max_connections_ - (IsBounded(uid) ? std::min(bounds_.places_of_root, max_connections_) : 0);
  if (IsBounded(uid)) {
    const bool crowded = connections_.size() > max_connections_ / 2;
    const size_t most = crowded ? bounds_.connections_when_full : bounds_.connections;
    const auto user = users_.find(uid);
    if (user != users_.end() && user->second.sockets.size() >= most)
      return Crowded(StrCat("user id ", uid, " has ", user->second.sockets.size(),
                            " connections to the engine already"));
  }
  if (connections_.size() < places || CloseIdlest()) return {};
  return Crowded(
      StrCat("the engine has ", connections_.size(), " connections, and has no place for another one"));
}

bool Server::CloseIdlest() {
  const Connection* idlest = nullptr;
  for (const auto& [fd, connection] : connections_) {
    const bool open = connection->waiting || connection->queued || !connection->replies.empty() ||
                      connection->reader.Buffered() > 0 || connection->writer.Pending() > 0;
    const bool roots = connection->uid == 0 && bounds_.connections > 0;
    if (open || roots) continue;
    if (idlest == nullptr || connection->moved_us < idlest->moved_us) idlest = connection.get();
  }
  if (idlest == nullptr) return false;
  Close(idlest->fd.Get());
  return true;
}

void Server::Count(Connection& connection) {
  User& user = users_[connection.uid];
  const size_t held = connection.reader.Buffered();
  size_t unread = connection.writer.Pending();
  for (const std::string& reply : connection.replies) unread += reply.size();
  user.held += held - connection.held;
  user.unread += unread - connection.unread;
  connection.held = held;
  connection.unread = unread;
}

// A user who does not read replies gets no further ones.
bool Server::MayAnswer(const Connection& connection) const {
  if (!IsBounded(connection.uid)) return true;
  return connection.writer.Pending() == 0 && users_.at(connection.uid).unread <= bounds_.unread_bytes;
}

bool Server::HasTime(uid_t uid) const {
  if (!IsBounded(uid) || bounds_.turn_us == 0) return true;
  const auto user = users_.find(uid);
  return user == users_.end() || user->second.turn != turn_ || user->second.spent_us < bounds_.turn_us;
}

void Server::Spend(uid_t uid, int64_t us) {
  User& user = users_[uid];
  if (user.turn != turn_) user.spent_us = 0;
  user.turn = turn_;
  user.spent_us += us;
}

void Server::Postpone(Connection& connection) {
  if (!connection.queued) backlog_.push_back(connection.fd.Get());
  connection.queued = true;
  Rearm(connection);
}

// Reading a long report takes time, and the end of an agent concerns its job alone: what takes longer than
// this turn may take is left for the next.
void Server::TakeEndedAgents() {
  const int64_t until = clock_.MonotonicUs() + kMostAgentsUs;
  while (!ended_agents_.empty()) {
    engine_.AgentEnded(ended_agents_.front());
    ended_agents_.pop_front();
    if (clock_.MonotonicUs() >= until) return;
  }
}

void Server::ReadFrom(Connection& connection) {
  const int fd = connection.fd.Get();
  const size_t before = connection.reader.Buffered();
  auto open = connection.reader.FeedFrom(connection.fd);
  if (!open) return Close(fd);
  if (connection.reader.Buffered() != before) connection.moved_us = clock_.MonotonicUs();
  Count(connection);
  HandleFrames(connection);
  if (!connections_.contains(fd)) return;
  Count(connection);
  if (IsBounded(connection.uid) && users_.at(connection.uid).held > bounds_.held_bytes) {
    (void)connection.writer.Add(CrowdedReply(
        {ErrorCode::kUnavailable,
         StrCat("user id ", connection.uid, " has more than ",
                FormatBytes(static_cast<int64_t>(bounds_.held_bytes)), " of unfinished requests"),
         "send fewer at the same time"}));
    (void)connection.writer.Flush(connection.fd);
    return Close(fd);
  }
  if (!*open) Close(fd);
}

// Finds out who the other end is; false: the connection was closed.
bool Server::Introduce(Connection& connection) {
  if (connection.asker) return true;
  const int64_t began = clock_.MonotonicUs();
  auto asker = callers_.Identify(connection.fd);
  Spend(connection.uid, clock_.MonotonicUs() - began);
  if (asker) {
    connection.asker = *std::move(asker);
    return true;
  }
  (void)connection.writer.Add(ErrorReply(asker.error()));
  (void)connection.writer.Flush(connection.fd);
  Close(connection.fd.Get());
  return false;
}

void Server::HandleFrames(Connection& connection) {
  const int fd = connection.fd.Get();
  for (size_t handled_now = 0; !connection.waiting; ++handled_now) {
    if (connection.reader.Buffered() == 0) break;
    const bool enough = IsBounded(connection.uid) && handled_now >= bounds_.requests_per_turn;
    if (enough || !HasTime(connection.uid) || !MayAnswer(connection)) return Postpone(connection);
    auto frame = connection.reader.Next();
    if (!frame) {
      (void)connection.writer.Add(ErrorReply({ErrorCode::kUsage, "the request is too long", "ask in parts"}));
      (void)connection.writer.Flush(connection.fd);
      return Close(fd);
    }
    if (!*frame) break;
    if (!Introduce(connection)) return;
    const int64_t began = clock_.MonotonicUs();
    last_busy_us_ = connection.moved_us = began;
    Handled handled = api_.Handle(**frame, *connection.asker);
    Spend(connection.uid, clock_.MonotonicUs() - began);
    stop_ = stop_ || handled.stop;
    if (handled.wait) {
      connection.waiting = true;
      waiters_.push_back({fd, *std::move(handled.wait)});
      continue;
    }
    connection.replies.push_back(std::move(handled.reply));
    touched_.push_back(fd);
    Count(connection);
  }
  Rearm(connection);
}

// Takes the requests that earlier turns have left. Those of a user without time in this turn keep their
// places.
void Server::TakeBacklog() {
  std::vector<int> kept;
  for (const int fd : std::exchange(backlog_, {})) {
    const auto found = connections_.find(fd);
    if (found == connections_.end() || !found->second->queued) continue;
    if (!HasTime(found->second->uid)) {
      kept.push_back(fd);
      continue;
    }
    found->second->queued = false;
    HandleFrames(*found->second);
    if (connections_.contains(fd)) Count(*found->second);
  }
  backlog_.insert(backlog_.begin(), kept.begin(), kept.end());
}

// What a bounded user sends is taken only when there is room for it and somebody will look at it.
void Server::Rearm(Connection& connection) {
  const int fd = connection.fd.Get();
  const bool full = IsBounded(connection.uid) && (connection.waiting || connection.queued) &&
                    connection.reader.Buffered() > 0;
  const uint32_t wanted =
      (full ? 0u : uint32_t{EPOLLIN}) | (connection.writer.Pending() > 0 ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == connection.armed) return;
  if (Arm(fd, wanted, EPOLL_CTL_MOD)) connection.armed = wanted;
}

// In the middle of something that does not move: a request of which the rest never comes, replies that nobody
// reads.
void Server::CloseStalled() {
  if (bounds_.stall_us == 0) return;
  const int64_t now = clock_.MonotonicUs();
  if (now < look_for_stalled_us_) return;
  look_for_stalled_us_ = now + bounds_.stall_us / kStallLooks;
  std::vector<int> stalled;
  for (const auto& [fd, connection] : connections_) {
    const bool busy =
        connection->writer.Pending() > 0 || (!connection->waiting && connection->reader.Buffered() > 0);
    if (IsBounded(connection->uid) && busy && now - connection->moved_us > bounds_.stall_us)
      stalled.push_back(fd);
  }
  for (const int fd : stalled) Close(fd);
}

// Waiters are few beside jobs: one per `wait` on the command line; each looks on from the first job that it
// waits for.
void Server::AnswerWaiters() {
  std::list<Waiter> open = std::exchange(waiters_, {});
  waiters_left_ = false;
  for (auto it = open.begin(); it != open.end();) {
    const auto current = it++;
    const auto found = connections_.find(current->fd);
    if (found == connections_.end()) continue;
    Connection& connection = *found->second;
    const bool now = MayAnswer(connection) && HasTime(connection.uid);
    waiters_left_ = waiters_left_ || (!now && MayAnswer(connection));
    const int64_t began = clock_.MonotonicUs();
    auto reply = now ? api_.Check(current->wait) : std::nullopt;
    if (!reply) {
      waiters_.splice(waiters_.end(), open, current);
      continue;
    }
    Spend(connection.uid, clock_.MonotonicUs() - began);
    connection.waiting = false;
    connection.moved_us = began;
    connection.replies.push_back(*std::move(reply));
    touched_.push_back(current->fd);
    Count(connection);
    HandleFrames(connection);  // what it has sent meanwhile
  }
}

void Server::SendReplies() {
  for (const int fd : std::exchange(touched_, {})) {
    auto found = connections_.find(fd);
    if (found == connections_.end()) continue;
    for (const std::string& reply : std::exchange(found->second->replies, {})) {
      if (found->second->writer.Add(reply)) continue;
      const Error too_long{ErrorCode::kUsage, "the answer is too long", "ask for fewer jobs"};
      (void)found->second->writer.Add(ErrorReply(too_long));
    }
    Count(*found->second);
    Flush(*found->second);
  }
}

void Server::Flush(Connection& connection) {
  const size_t before = connection.writer.Pending();
  if (before == 0) return;
  const int fd = connection.fd.Get();
  if (!connection.writer.Flush(connection.fd)) return Close(fd);
  if (connection.writer.Pending() != before) connection.moved_us = clock_.MonotonicUs();
  Count(connection);
  Rearm(connection);
}

void Server::Close(int fd) {
  const auto found = connections_.find(fd);
  if (found != connections_.end()) {
    const auto user = users_.find(found->second->uid);
    user->second.sockets.erase(fd);
    user->second.held -= found->second->held;
    user->second.unread -= found->second->unread;
    // The time that it has used of this turn still counts.
    if (user->second.sockets.empty() && user->second.turn != turn_) users_.erase(user);
    connections_.erase(found);
  }
  waiters_.remove_if([fd](const Waiter& waiter) { return waiter.fd == fd; });
}

bool Server::AnyBacklogReady() const {
  return std::any_of(backlog_.begin(), backlog_.end(), [this](int fd) {
    const auto found = connections_.find(fd);
    return found != connections_.end() && MayAnswer(*found->second);
  });
}

int Server::TimeoutMs() const {
  int64_t until = INT64_MAX;
  if (!ended_agents_.empty() || waiters_left_) return 0;
  if (!refused_.empty()) until = refused_.front().second;
  for (const Waiter& waiter : waiters_) {
    const auto found = connections_.find(waiter.fd);
    if (found != connections_.end() && MayAnswer(*found->second))
      until = std::min(until, waiter.wait.deadline_us);
  }
  if (engine_.RetryAtUs() != 0) until = std::min(until, engine_.RetryAtUs());
  if (idle_exit_us_ > 0) until = std::min(until, last_busy_us_ + idle_exit_us_);
  if (AnyBacklogReady()) return 0;
  if (bounds_.stall_us > 0 && !connections_.empty()) until = std::min(until, look_for_stalled_us_);
  if (!accepting_) until = std::min(until, clock_.MonotonicUs() + kAcceptPauseUs);
  if (until == INT64_MAX) return -1;
  const int64_t left_us = std::max<int64_t>(0, until - clock_.MonotonicUs());
  return static_cast<int>(std::min<int64_t>(INT_MAX, left_us / 1000 + 1));
}

bool Server::IdleTooLong() const {
  if (idle_exit_us_ == 0 || !connections_.empty() || engine_.table().ActiveCount() > engine_.JobsElsewhere())
    return false;
  return clock_.MonotonicUs() - last_busy_us_ >= idle_exit_us_;
}

}  // namespace overcap
