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
#include "net/unix_socket.h"

namespace overcap {
namespace {

constexpr size_t kMaxConnections = 4096;
constexpr int64_t kAcceptPauseUs = 100'000;
constexpr int64_t kStallLooks = 12;  // within the time after which a connection is closed

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
    if (connections_.size() < max_connections_) SetAccepting(true);
    TakeBacklog();
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == listener_.Get()) {
        AcceptAll();
      } else if (fd == signals_.Get()) {
        stop_ = true;
      } else if (fd == agents_.EndedFd()) {
        for (const AgentToken& token : agents_.TakeEnded()) engine_.AgentEnded(token);
      } else if (auto found = connections_.find(fd); found != connections_.end()) {
        if (events[static_cast<size_t>(i)].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) ReadFrom(*found->second);
        if (connections_.contains(fd)) Flush(*found->second);
      }
    }
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

void Server::AcceptAll() {
  while (true) {
    if (connections_.size() >= max_connections_) return SetAccepting(false);
    auto accepted = AcceptUnix(listener_);
    if (!accepted) return SetAccepting(false);
    if (!*accepted) return;
    auto asker = callers_.Identify(**accepted);
    if (asker) Admit(*std::move(*accepted), *std::move(asker));
  }
}

void Server::Admit(Fd socket, Asker asker) {
  const int fd = socket.Get();
  const int64_t uid = asker.owner.uid;
  const uint32_t most = bounds_.request_bytes > 0 && !asker.root() ? bounds_.request_bytes : kMaxFrameBytes;
  auto connection = std::make_unique<Connection>(std::move(socket), std::move(asker), most);
  if (IsBounded(*connection) && bounds_.connections > 0 && sockets_of_[uid].size() >= bounds_.connections) {
    const Error full{ErrorCode::kUnavailable,
                     StrCat("user '", connection->asker.user, "' has ", bounds_.connections,
                            " connections to the engine already"),
                     "end some of the commands that wait"};
    (void)connection->writer.Add(ErrorReply(full));
    (void)connection->writer.Flush(connection->fd);
    return;
  }
  connection->armed = EPOLLIN;
  connection->moved_us = clock_.MonotonicUs();
  if (!Arm(fd, EPOLLIN, EPOLL_CTL_ADD)) return;
  sockets_of_[uid].insert(fd);
  // The request is usually there already: saves one round through epoll.
  Connection& added = *(connections_[fd] = std::move(connection));
  ReadFrom(added);
}

bool Server::IsBounded(const Connection& connection) const {
  return !connection.asker.only_user && !connection.asker.root();
}

size_t Server::UnreadBytes(int64_t uid) const {
  size_t sum = 0;
  const auto sockets = sockets_of_.find(uid);
  for (const int fd : sockets == sockets_of_.end() ? std::set<int>() : sockets->second) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) continue;
    sum += found->second->writer.Pending();
    for (const std::string& reply : found->second->replies) sum += reply.size();
  }
  return sum;
}

// Whoever does not read what was said is told no more.
bool Server::MayAnswer(const Connection& connection) const {
  if (!IsBounded(connection)) return true;
  return connection.writer.Pending() == 0 && UnreadBytes(connection.asker.owner.uid) <= bounds_.unread_bytes;
}

void Server::ReadFrom(Connection& connection) {
  const int fd = connection.fd.Get();
  const size_t before = connection.reader.Buffered();
  auto open = connection.reader.FeedFrom(connection.fd);
  if (!open) return Close(fd);
  if (connection.reader.Buffered() != before) connection.moved_us = clock_.MonotonicUs();
  HandleFrames(connection);
  if (!*open && connections_.contains(fd)) Close(fd);
}

void Server::HandleFrames(Connection& connection) {
  const int fd = connection.fd.Get();
  for (size_t handled_now = 0; !connection.waiting; ++handled_now) {
    const bool enough = IsBounded(connection) && handled_now >= bounds_.requests_per_turn;
    if (enough || !MayAnswer(connection)) {
      backlog_.insert(fd);
      return Rearm(connection);
    }
    auto frame = connection.reader.Next();
    if (!frame) {
      (void)connection.writer.Add(ErrorReply({ErrorCode::kUsage, "the request is too long", "ask in parts"}));
      (void)connection.writer.Flush(connection.fd);
      return Close(fd);
    }
    if (!*frame) break;
    last_busy_us_ = clock_.MonotonicUs();
    Handled handled = api_.Handle(**frame, connection.asker);
    stop_ = stop_ || handled.stop;
    if (handled.wait) {
      connection.waiting = true;
      waiters_.push_back({fd, *std::move(handled.wait)});
      continue;
    }
    connection.replies.push_back(std::move(handled.reply));
    touched_.push_back(fd);
  }
  Rearm(connection);
}

// Requests that were left for later, where their user may be answered now.
void Server::TakeBacklog() {
  for (const int fd : std::exchange(backlog_, {})) {
    const auto found = connections_.find(fd);
    if (found != connections_.end()) HandleFrames(*found->second);
  }
}

// What a bounded user sends is taken only when there is room for it and somebody will look at it.
void Server::Rearm(Connection& connection) {
  const int fd = connection.fd.Get();
  const bool full = IsBounded(connection) && (connection.waiting || backlog_.contains(fd)) &&
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
    if (IsBounded(*connection) && busy && now - connection->moved_us > bounds_.stall_us)
      stalled.push_back(fd);
  }
  for (const int fd : stalled) Close(fd);
}

// Waiters are few beside jobs: one per `wait` on the command line; each looks on from the first job that it
// waits for.
void Server::AnswerWaiters() {
  std::list<Waiter> open = std::exchange(waiters_, {});
  for (auto it = open.begin(); it != open.end();) {
    auto reply = api_.Check(it->wait);
    auto connection = connections_.find(it->fd);
    const auto current = it++;
    if (connection == connections_.end()) continue;
    if (!reply) {
      waiters_.splice(waiters_.end(), open, current);
      continue;
    }
    connection->second->waiting = false;
    connection->second->replies.push_back(*std::move(reply));
    touched_.push_back(connection->first);
    HandleFrames(*connection->second);  // what it has sent meanwhile
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
    Flush(*found->second);
  }
}

void Server::Flush(Connection& connection) {
  const size_t before = connection.writer.Pending();
  if (before == 0) return;
  const int fd = connection.fd.Get();
  if (!connection.writer.Flush(connection.fd)) return Close(fd);
  if (connection.writer.Pending() != before) connection.moved_us = clock_.MonotonicUs();
  Rearm(connection);
}

void Server::Close(int fd) {
  const auto found = connections_.find(fd);
  if (found != connections_.end()) {
    const auto sockets = sockets_of_.find(found->second->asker.owner.uid);
    sockets->second.erase(fd);
    if (sockets->second.empty()) sockets_of_.erase(sockets);
    connections_.erase(found);
  }
  backlog_.erase(fd);
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
  for (const Waiter& waiter : waiters_) until = std::min(until, waiter.wait.deadline_us);
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
  if (idle_exit_us_ == 0 || !connections_.empty() || engine_.table().ActiveCount() > 0) return false;
  return clock_.MonotonicUs() - last_busy_us_ >= idle_exit_us_;
}

}  // namespace overcap
