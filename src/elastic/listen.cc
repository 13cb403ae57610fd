// SPDX-License-Identifier: Apache-2.0
#include "elastic/listen.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "net/resolve.h"
#include "net/tcp.h"

namespace overcap::elastic {
namespace {

constexpr int kWaiting = 4096;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

bool Fill(const std::string& address, int port, SocketAddress* out) {
  auto* four = reinterpret_cast<sockaddr_in*>(&out->storage);
  if (inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    out->size = sizeof *four;
    return true;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&out->storage);
  if (inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(static_cast<uint16_t>(port));
  out->size = sizeof *six;
  return true;
}

Result<Fd> Bound(const std::string& address, int port, bool reuse) {
  SocketAddress at;
  if (!Fill(address, port, &at)) return Fail(ErrorCode::kUsage, StrCat("'", address, "' is no address"));
  Fd fd(socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Fail(ErrnoError(errno, "cannot make a socket"));
  const int on = 1;
  if (reuse) (void)setsockopt(fd.Get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.Get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0) return fd;
  if (errno == EADDRINUSE)
    return Fail(ErrorCode::kConflict, StrCat("port ", port, " of '", address, "' is taken"));
  return Fail(ErrnoError(errno, StrCat("cannot use port ", port, " of '", address, "'")));
}

}  // namespace

Result<Fd> ListenAt(const std::string& address, int port) {
  OC_TRY(fd, Bound(address, port, port != 0));
  if (listen(fd.Get(), kWaiting) == 0) return fd;
  if (errno == EADDRINUSE)
    return Fail(ErrorCode::kConflict, StrCat("port ", port, " of '", address, "' is taken"));
  return Fail(ErrnoError(errno, StrCat("cannot listen on port ", port)));
}

int PortOf(const Fd& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(socket.Get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return 0;
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

bool IsOwnAddress(const std::string& address) {
  return Bound(address, 0, false).has_value();  // the kernel knows best: only own addresses can be bound
}

Result<std::vector<std::string>> AddressesOf(const std::string& host, int wait_ms) {
  SocketAddress literal;
  if (Fill(host, 1, &literal)) return std::vector<std::string>{host};
  OC_TRY(pipe, ResolveBeside(host));
  std::string text;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  for (;;) {
    char chunk[1024];
    const ssize_t n = read(pipe.Get(), chunk, sizeof chunk);
    if (n > 0) text.append(chunk, static_cast<size_t>(n));
    if (n == 0) break;
    if (n < 0 && errno != EAGAIN && errno != EINTR) break;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) break;
    pollfd wait{pipe.Get(), POLLIN, 0};
    (void)poll(&wait, 1, static_cast<int>(left));
  }
  std::vector<std::string> addresses;
  for (const std::string& line : Split(text, '\n')) {
    if (!line.empty()) addresses.push_back(line);
  }
  if (addresses.empty()) return Fail(ErrorCode::kUnavailable, StrCat("host '", host, "' has no address"));
  return addresses;
}

HeldPort HoldPort(int port) {
  HeldPort held;
  auto bound = Bound("0.0.0.0", port, port != 0);
  if (!bound) return held;
  held.socket = std::move(*bound);
  held.port = PortOf(held.socket);
  return held;
}

}  // namespace overcap::elastic
