// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/watch_node.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "launch/foreign/head_search.h"
#include "launch/foreign/rank_family.h"
#include "launch/foreign/rank_packets.h"
#include "launch/foreign/watched_rank.h"
#include "launch/link/channel.h"
#include "launch/link/messages.h"
#include "launch/local/node_ranks.h"
#include "launch/local/stacks.h"
#include "net/tcp.h"
#include "net/unix_socket.h"
#include "sys/clock.h"
#include "sys/file_limit.h"
#include "sys/free_port.h"
#include "sys/oom.h"
#include "sys/stop_ladder.h"

namespace overcap {
namespace {

constexpr size_t kBacklogBytes = 4 << 20;
constexpr size_t kReadBytes = 256 << 10;
constexpr int64_t kSweepStepUs = 20'000;
constexpr int64_t kStacksUs = 6'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// A rank that has said who it is and waits to be let go on.
struct Waiting {
  Fd connection;
  size_t rank;  // position in ranks_
};

class WatchNode {
 public:
  WatchNode(Fd listener, const WatchRequest& request)
      : listener_(std::move(listener)),
        request_(request),
        search_(request.contact, request.key, random_, clock_.MonotonicUs(), request.times.search),
        tag_(StrCat(kIdVariable, "=", LaunchTag(request.contact, request.host))),
        deaths_(epoll_create1(EPOLL_CLOEXEC)),
        oom_kills_(KernelOomKills()),
        alone_until_us_(clock_.MonotonicUs() + request.times.search + request.times.alone),
        buffer_(kReadBytes, '\0') {}

  void Run() {
    while (!Done()) Turn();
    Part();
  }

 private:
  void Turn() {
    Wait();
    now_us_ = clock_.MonotonicUs();
    TakeJoiners();
    Search();
    ServeHead();
    PumpOutput();
    TakeDeaths();
    Climb();
    Sweep();
    Send();
  }

  // ---- waiting

  void Wait() {
    std::vector<pollfd> fds;
    fds.push_back({listener_.Get(), POLLIN, 0});
    for (const Fd& each : unknown_) fds.push_back({each.Get(), POLLIN, 0});
    if (head_) {
      fds.push_back({head_->ReadFd(), POLLIN, 0});
      if (head_->Pending() > 0) fds.push_back({head_->WriteFd(), POLLOUT, 0});
    } else if (!alone_) {
      search_.AddFds(&fds);
    }
    fds.push_back({deaths_.Get(), POLLIN, 0});
    if (head_ && head_->Pending() < kBacklogBytes) {
      for (const auto& rank : ranks_) rank->AddOutputFds(&fds);
    }
    const int64_t left = NextUs() - clock_.MonotonicUs();
    const int64_t ms = std::clamp<int64_t>((left + 999) / 1000, 0, 60'000);
    poll(fds.data(), fds.size(), static_cast<int>(ms));
  }

  int64_t NextUs() const {
    const int64_t now_us = clock_.MonotonicUs();
    int64_t next = std::min(sweep_at_us_, ladder_ ? ladder_->NextUs() : kNever);
    if (!head_ && !alone_) next = std::min(next, search_.NextUs());
    if (alone_) next = std::min(next, alone_until_us_);
    for (const auto& rank : ranks_) next = std::min(next, rank->NextUs(now_us));
    return next;
  }

  // ---- ranks that come

  void TakeJoiners() {
    for (;;) {
      auto connection = AcceptUnix(listener_);
      if (!connection || !*connection) break;
      const auto uid = PeerUid(**connection);
      if (uid && *uid == geteuid()) unknown_.push_back(std::move(**connection));
    }
    std::erase_if(unknown_, [this](Fd& each) { return TakeJoin(&each); });
  }

  // True when there is no more to wait for on this connection.
  bool TakeJoin(Fd* connection) {
    char text[64];
    iovec part{text, sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(connection->Get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    int fds[2] = {-1, -1};
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (size > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(fds, CMSG_DATA(header), std::min(sizeof fds, header->cmsg_len - CMSG_LEN(0)));
    }
    Fd out(fds[0]), err(fds[1]);
    const auto rank = ParseInt(std::string_view(text, size > 0 ? static_cast<size_t>(size) : 0));
    ucred peer{};
    socklen_t peer_size = sizeof peer;
    getsockopt(connection->Get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_size);
    if (!rank || *rank < 0 || !out || !err || peer.pid <= 0) return true;
    ++joined_;
    AddRank(static_cast<int>(*rank), peer.pid, std::move(*connection), std::move(out), std::move(err));
    return true;
  }

  void AddRank(int rank, pid_t pid, Fd connection, Fd out, Fd err) {
    if (alone_ || stopping_)
      return Answer(connection, alone_ ? Alone() : NodeAnswer{NodeAnswer::Kind::kStopped, "", 0, ""});
    ranks_.push_back(std::make_unique<WatchedRank>(rank, pid, std::move(out), std::move(err)));
    waiting_.push_back({std::move(connection), ranks_.size() - 1});
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u64 = ranks_.size() - 1;
    if (ranks_.back()->pidfd() >= 0) epoll_ctl(deaths_.Get(), EPOLL_CTL_ADD, ranks_.back()->pidfd(), &event);
    if (head_) head_->Send(node_link::Encode(node_link::Begun{rank, pid}));
    if (place_) LetGo();
  }

  NodeAnswer Alone() const { return {NodeAnswer::Kind::kAlone, "", 0, search_.why()}; }

  static void Answer(const Fd& connection, const NodeAnswer& answer) {
    const std::string packet = EncodeAnswer(answer);
    (void)!send(connection.Get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void AnswerAll(const NodeAnswer& answer) {
    for (const Waiting& each : waiting_) Answer(each.connection, answer);
    waiting_.clear();
  }

  void LetGo() { AnswerAll({NodeAnswer::Kind::kGo, place_->master_addr, place_->master_port, ""}); }

  // ---- the head

  void Search() {
    if (head_ || alone_) return;
    search_.Step(now_us_);
    if (search_.Failed()) GoAlone();
    if (search_.Found()) Greet(search_.TakeConnection());
  }

  void GoAlone() {
    alone_ = true;
    AnswerAll(Alone());
    ranks_.clear();
  }

  void Greet(Fd connection) {
    std::string address = LocalAddressOf(connection);
    // Through loopback: this is the head's own host, and its other addresses are ours.
    if (IsLoopback(address) && !request_.contact.addresses.empty()) address = request_.contact.addresses[0];
    head_ = std::make_unique<node_link::Channel>(node_link::Ends{std::move(connection), Fd()});
    node_link::Hello hello;
    hello.version = OVERCAP_VERSION;
    hello.host = request_.host;
    hello.address = address;
    hello.free_port = FreePort();
    hello.node_rank = request_.node_rank;
    head_->Send(node_link::Encode(hello));
    for (const auto& rank : ranks_)
      head_->Send(node_link::Encode(node_link::Begun{rank->rank(), rank->pid()}));
  }

  void ServeHead() {
    if (!head_ || head_gone_) return;
    const bool open = head_->Read();
    for (;;) {
      const auto frame = head_->Next();
      if (!frame) return HeadGone();
      if (!*frame) break;
      const auto message = node_link::DecodeToNode(**frame);
      if (!message) return HeadGone();
      Obey(*message);
    }
    if (!open) HeadGone();
  }

  void Obey(const node_link::ToNode& message) {
    if (const auto* place = std::get_if<node_link::Place>(&message)) {
      place_ = *place;
      if (!stopping_) LetGo();
    } else if (std::holds_alternative<node_link::Stacks>(message)) {
      SendStacks();
    } else if (std::holds_alternative<node_link::Warn>(message)) {
      WarnFamily(ranks_, tag_);
    } else if (const auto* stop = std::get_if<node_link::Stop>(&message)) {
      stop_signal_ = stop->interrupted ? SIGINT : SIGTERM;
      BeginStop(stop->grace_us);
    }
  }

  void HeadGone() {
    head_gone_ = true;
    BeginStop(request_.contact.grace_us);
  }

  void SendStacks() {
    std::vector<pid_t> pids;
    std::vector<int> numbers;
    for (const auto& rank : ranks_) {
      if (!rank->alive()) continue;
      pids.push_back(rank->pid());
      numbers.push_back(rank->rank());
    }
    const auto stacks = CollectStacks(pids, clock_.MonotonicUs() + kStacksUs);
    for (size_t i = 0; i < stacks.size(); ++i) {
      head_->Send(node_link::Encode(node_link::Stack{numbers[i], stacks[i]}));
    }
  }

  void Send() {
    if (head_ && !head_gone_ && !head_->Flush()) HeadGone();
  }

  // ---- output and ends

  void PumpOutput() {
    if (!head_) return;
    for (const auto& rank : ranks_) Pump(rank.get(), 1);
  }

  // Whatever is there now, in at most `rounds` turns. After the head has gone nobody wants it, but a rank
  // that cannot write does not end.
  void Pump(WatchedRank* rank, int rounds) {
    for (int stream = 1; stream <= 2; ++stream) {
      for (int i = 0; i < rounds && (head_gone_ || head_->Pending() < kBacklogBytes); ++i) {
        const size_t size = rank->Read(stream, &buffer_);
        if (size == 0) break;
        if (!head_gone_) head_->SendOutput(rank->rank(), stream, {buffer_.data(), size});
      }
    }
  }

  // Those that died since the last time, in the order of their deaths, come before all others.
  void TakeDeaths() {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(deaths_.Get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) TakeDeath(ranks_[events[i].data.u64].get());
    for (const auto& rank : ranks_) TakeDeath(rank.get());
  }

  void TakeDeath(WatchedRank* rank) {
    const auto end = rank->CheckEnd(now_us_);
    if (!end) return;
    if (head_) Pump(rank, 8);
    last_death_us_ = now_us_;
    Report(rank->rank(), *end);
  }

  void Report(int rank, const WatchedRank::End& end) {
    node_link::Ended ended;
    ended.rank = rank;
    ended.known = end.has_value();
    if (end) {
      ended.exit_status = end->exit_status;
      ended.signal = end->signal;
    }
    if (!end || end->signal == SIGKILL) ended.out_of_memory = OomKilled();
    std::erase_if(waiting_, [&](const Waiting& each) { return ranks_[each.rank]->rank() == rank; });
    if (head_ && !head_gone_) head_->Send(node_link::Encode(ended));
  }

  bool OomKilled() {
    const int64_t kills = KernelOomKills();
    const bool more = kills > oom_kills_;
    oom_kills_ = std::max(kills, oom_kills_);
    return more;
  }

  bool AnyAlive() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->alive(); });
  }
  bool OutputOpen() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->OutputOpen(); });
  }

  // ---- stopping

  void BeginStop(int64_t grace_us) {
    AnswerAll({NodeAnswer::Kind::kStopped, "", 0, ""});
    if (stopping_ && ladder_ && grace_us == 0) ladder_->Hurry(clock_.MonotonicUs());
    if (stopping_) return;
    stopping_ = true;
    if (AnyAlive()) ladder_.emplace(clock_.MonotonicUs(), grace_us, request_.times.kill);
  }

  void Climb() {
    if (!ladder_ || gave_up_) return;
    switch (ladder_->Next(now_us_)) {
      case StopLadder::Step::kWait:
        break;
      case StopLadder::Step::kTerm:
        SignalFamily(ranks_, tag_, stop_signal_);
        break;
      case StopLadder::Step::kKill:
        SignalFamily(ranks_, tag_, SIGKILL);
        break;
      case StopLadder::Step::kGiveUp:
        GiveUp();
        break;
    }
  }

  void GiveUp() {
    gave_up_ = true;
    if (head_ && !head_gone_) {
      head_->Send(node_link::Encode(node_link::Note{
          StrCat("host '", request_.host, "': some processes of the ranks could not be killed")}));
    }
  }

  // When the last rank has ended: what it left behind gets a moment, then it is stopped, too.
  void Sweep() {
    if (AnyAlive() || !EverybodyCame() || swept_ || alone_ || (!head_ && !stopping_)) return;
    if (now_us_ < sweep_at_us_ && sweep_at_us_ != kNever) return;
    const bool left = !BegunBy(ranks_, tag_).empty();
    if (!left && !OutputOpen()) return Swept();
    if (gave_up_) return Swept();
    if (!left && now_us_ >= last_death_us_ + request_.times.linger) return Swept();
    if (left && !ladder_ && now_us_ >= last_death_us_ + request_.times.linger) {
      ladder_.emplace(now_us_, request_.times.stray_grace, request_.times.kill);
    }
    sweep_at_us_ = now_us_ + kSweepStepUs;
  }

  void Swept() {
    swept_ = true;
    sweep_at_us_ = kNever;
    ladder_.reset();
    for (const auto& rank : ranks_) {
      if (head_) Pump(rank.get(), 64);
    }
  }

  bool EverybodyCame() const { return stopping_ || joined_ >= request_.local_ranks; }

  bool Done() const {
    if (alone_) return joined_ >= request_.local_ranks || now_us_ >= alone_until_us_;
    return swept_ && (head_gone_ || !OutputWaits());
  }
  // Output that the head has had no room for yet.
  bool OutputWaits() const { return head_ && OutputOpen() && head_->Pending() >= kBacklogBytes; }

  // The last word, and not a byte of it lost: the head says goodbye when it has all, and sees by the closed
  // connection that this process is gone.
  void Part() {
    listener_.Reset();
    if (!head_ || head_gone_) return;
    for (const auto& rank : ranks_) Pump(rank.get(), 64);
    head_->Send(node_link::Encode(node_link::NothingLeft{}));
    for (int64_t until = kNever; clock_.MonotonicUs() < until;) {
      if (!head_->Flush()) return;
      const bool told = head_->Pending() == 0;
      if (told && until == kNever) until = clock_.MonotonicUs() + request_.times.part;
      pollfd entry{head_->ReadFd(), static_cast<short>(told ? POLLIN : POLLIN | POLLOUT), 0};
      poll(&entry, 1, 1000);
      if (!head_->Read()) return;
    }
  }

  PosixClock clock_;
  KernelRandom random_;
  Fd listener_;
  const WatchRequest& request_;
  HeadSearch search_;
  const std::string tag_;
  Fd deaths_;  // an epoll of the ranks' pidfds: it tells who died in the order of the deaths
  int64_t oom_kills_;
  const int64_t alone_until_us_;
  std::string buffer_;
  std::unique_ptr<node_link::Channel> head_;
  std::optional<node_link::Place> place_;
  std::vector<Fd> unknown_;  // have not said who they are
  std::vector<Waiting> waiting_;
  std::vector<std::unique_ptr<WatchedRank>> ranks_;
  std::optional<StopLadder> ladder_;
  int stop_signal_ = SIGTERM;
  int joined_ = 0;
  int64_t now_us_ = 0, last_death_us_ = 0, sweep_at_us_ = kNever;
  bool alone_ = false, stopping_ = false, head_gone_ = false, gave_up_ = false, swept_ = false;
};

// Whoever signals all processes of a job means the ranks; this one ends when they have.
void IgnoreSignals() {
  for (const int sig : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP,
                        SIGTTIN, SIGTTOU, SIGXCPU}) {
    signal(sig, SIG_IGN);
  }
}

}  // namespace

void RunWatchNode(Fd listener, const WatchRequest& request) {
  IgnoreSignals();
  AllowOpenFiles(FilesFor(request.local_ranks));
  // Never destroyed: the head takes the end of the connection for the end of this process, so the kernel
  // shall close it.
  (new WatchNode(std::move(listener), request))->Run();
}

}  // namespace overcap
