// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/rank_link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/close_range.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/foreign/launch_contact.h"
#include "launch/foreign/rank_packets.h"
#include "launch/foreign/watch_node.h"
#include "net/unix_socket.h"
#include "sys/clock.h"
#include "sys/own_host_name.h"
#include "sys/pipe.h"

namespace overcap {
namespace {

constexpr int64_t kDeadlineUs = 30'000'000;
constexpr int64_t kRetryUs = 1'000;
constexpr int kPipeBytes = 256 << 10;
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC;

// The name of this host: Slurm's own when it has one, since several of its nodes may be one machine.
std::string HostName(const Variables& variables) {
  std::string name(variables.Get("SLURMD_NODENAME"));
  return name.empty() ? OwnHostName() : name;
}

// A name without a file: it goes with the process that holds it. Ranks and node process of a launch meet
// there.
struct MeetingPlace {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

MeetingPlace PlaceOf(const std::string& tag) {
  MeetingPlace place;
  std::string name = StrCat("overcap-launch-", geteuid(), "-", tag);
  name.resize(std::min(name.size(), sizeof place.address.sun_path - 1));
  place.address.sun_family = AF_UNIX;
  std::memcpy(place.address.sun_path + 1, name.data(), name.size());
  place.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return place;
}

// Leaves a process in the background that holds nothing of this one but the socket: neither the launcher's
// pipes nor the descriptors through which a launcher counts its ranks.
void BecomeNode(Fd listener, const WatchRequest& request) {
  setsid();
  if (fork() != 0) _exit(0);
  prctl(PR_SET_NAME, "overcap-watch");
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  const int kept = 3;
  if (listener.Get() != kept) {
    dup2(listener.Get(), kept);
    fcntl(kept, F_SETFD, FD_CLOEXEC);
    listener.Reset();
  } else {
    (void)listener.Release();
  }
  close_range(kept + 1, ~0U, 0);
  (void)!chdir("/");
  RunWatchNode(Fd(kept), request);
  _exit(0);
}

Result<void> StartNode(Fd listener, const WatchRequest& request) {
  const pid_t pid = fork();
  if (pid < 0) return Fail(ErrnoError(errno, "cannot start a process"));
  if (pid == 0) BecomeNode(std::move(listener), request);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;  // it ends at once
  return {};
}

// Whoever binds the name first starts the node process; nullopt: somebody else has.
Result<std::optional<Fd>> TryToListen(const MeetingPlace& place) {
  Fd listener(socket(AF_UNIX, kSocketType | SOCK_NONBLOCK, 0));
  if (!listener) return Fail(ErrnoError(errno, "cannot make a socket"));
  if (bind(listener.Get(), place.get(), place.size) != 0) {
    if (errno == EADDRINUSE) return std::optional<Fd>();
    return Fail(ErrnoError(errno, "cannot bind a socket"));
  }
  if (listen(listener.Get(), SOMAXCONN) != 0) return Fail(ErrnoError(errno, "cannot listen"));
  return std::optional<Fd>(std::move(listener));
}

// Connected, or nullopt when nobody listens there right now.
Result<std::optional<Fd>> TryToConnect(const MeetingPlace& place) {
  Fd connection(socket(AF_UNIX, kSocketType | SOCK_NONBLOCK, 0));
  if (!connection) return Fail(ErrnoError(errno, "cannot make a socket"));
  if (connect(connection.Get(), place.get(), place.size) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN) return std::optional<Fd>();
    return Fail(ErrnoError(errno, "cannot connect to the node process"));
  }
  const auto uid = PeerUid(connection);
  if (!uid || *uid != geteuid()) {
    return Fail(ErrorCode::kDenied, "another user listens where the node process should");
  }
  return std::optional<Fd>(std::move(connection));
}

Result<Fd> Connect(const MeetingPlace& place, const WatchRequest& request, int64_t deadline_us) {
  const PosixClock clock;
  while (clock.MonotonicUs() < deadline_us) {
    OC_TRY(connection, TryToConnect(place));
    if (connection) return std::move(*connection);
    OC_TRY(listener, TryToListen(place));
    if (listener) {
      OC_TRY_VOID(StartNode(std::move(*listener), request));
    } else {
      usleep(kRetryUs);
    }
  }
  return Fail(ErrorCode::kUnavailable, "the node process does not answer");
}

Result<PipeEnds> MakeWidePipe() {
  OC_TRY(ends, MakePipe());
  (void)fcntl(ends.write.Get(), F_SETPIPE_SZ, kPipeBytes);
  return ends;
}

Result<void> SendJoin(const Fd& connection, int rank, const PipeEnds& out, const PipeEnds& err) {
  std::string text = std::to_string(rank);
  iovec part{text.data(), text.size()};
  const int fds[2] = {out.read.Get(), err.read.Get()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  if (sendmsg(connection.Get(), &message, MSG_NOSIGNAL) < 0) {
    return Fail(ErrorCode::kUnavailable, "the node process has gone");
  }
  return {};
}

Result<NodeAnswer> ReceiveAnswer(const Fd& connection, int64_t deadline_us) {
  const PosixClock clock;
  for (;;) {
    const int64_t left_ms = (deadline_us - clock.MonotonicUs()) / 1000;
    if (left_ms <= 0) return Fail(ErrorCode::kUnavailable, "the launch did not say in time where rank 0 is");
    pollfd entry{connection.Get(), POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(left_ms)) <= 0) continue;
    char packet[1024];
    const ssize_t size = recv(connection.Get(), packet, sizeof packet, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) return Fail(ErrorCode::kUnavailable, "the node process has gone");
    return ParseAnswer({packet, static_cast<size_t>(size)});
  }
}

Result<RankLink> Join(const RankPlace& place, const WatchRequest& request) {
  const int64_t deadline_us = PosixClock().MonotonicUs() + kDeadlineUs;
  const MeetingPlace meeting = PlaceOf(LaunchTag(request.contact, request.host));
  OC_TRY(connection, Connect(meeting, request, deadline_us));
  OC_TRY(out, MakeWidePipe());
  OC_TRY(err, MakeWidePipe());
  OC_TRY_VOID(SendJoin(connection, place.rank, out, err));
  OC_TRY(answer, ReceiveAnswer(connection, deadline_us));
  if (answer.kind == NodeAnswer::Kind::kStopped) {
    return Fail(ErrorCode::kConflict, "the launch was stopped before this rank began");
  }
  if (answer.kind == NodeAnswer::Kind::kAlone) return Fail(ErrorCode::kUnavailable, answer.reason);
  return RankLink{answer.master_addr, answer.master_port, std::move(out.write), std::move(err.write), ""};
}

RankLink WithoutLink(const LaunchContact& contact, std::string_view why) {
  RankLink link;
  link.master_addr = contact.master_addr;
  link.master_port = contact.master_port;
  if (!why.empty()) {
    link.note = StrCat("no link to 'overcap launch' (", why, "): output goes through the launcher instead");
  }
  return link;
}

}  // namespace

Result<RankLink> JoinNode(const RankPlace& place, Variables* variables) {
  OC_TRY(contact, ParseContact(variables->Get(kContactVariable)));
  const auto key = LinkKey::FromHex(variables->Get(kKeyVariable));
  WatchRequest request{contact,         key.value_or(LinkKey{}), HostName(*variables),
                       place.node_rank, place.local_world_size,  {}};
  variables->Remove(kContactVariable);
  variables->Remove(kKeyVariable);
  variables->Set(kIdVariable, LaunchTag(contact, request.host));
  if (contact.port == 0) return WithoutLink(contact, "");
  if (!key) return WithoutLink(contact, StrCat("variable '", kKeyVariable, "' did not come through"));
  auto link = Join(place, request);
  if (link || link.error().code == ErrorCode::kConflict) return link;
  RankLink without = WithoutLink(contact, link.error().message);
  if (place.local_rank != 0) without.note.clear();
  return without;
}

Result<void> UseLink(const RankLink& link) {
  if (link.out && dup2(link.out.Get(), STDOUT_FILENO) < 0)
    return Fail(ErrnoError(errno, "cannot set stdout"));
  if (link.err && dup2(link.err.Get(), STDERR_FILENO) < 0)
    return Fail(ErrnoError(errno, "cannot set stderr"));
  return {};
}

}  // namespace overcap
