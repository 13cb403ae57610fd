// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_connect.h"

#include <arpa/inet.h>
#include <cerrno>
#include <poll.h>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "net/resolve.h"
#include "net/tcp.h"

namespace overcap {
namespace {

constexpr int64_t kPerAddressUs = 3'000'000;  // when there are others to try

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

Result<std::vector<std::string>> AddressesOf(const std::string& host, const HttpWait& wait) {
  if (IsAddress(host)) return std::vector<std::string>{host};
  OC_TRY(pipe, ResolveBeside(host));
  std::string text;
  while (true) {
    char chunk[4096];
    const ssize_t n = read(pipe.Get(), chunk, sizeof chunk);
    if (n == 0) break;
    if (n > 0) text.append(chunk, static_cast<size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) return Fail(ErrnoError(errno, "cannot read addresses"));
    if (n < 0 && errno == EAGAIN) OC_TRY_VOID(wait.For(pipe.Get(), POLLIN));
  }
  std::vector<std::string> addresses;
  for (const std::string& line : Split(text, '\n'))
    if (!line.empty()) addresses.push_back(line);
  if (addresses.empty())
    return Fail(ErrorCode::kUnavailable, StrCat("the host '", host, "' is not known"),
                "look at its name, and whether this machine has a network");
  return addresses;
}

Result<Fd> ConnectTo(const std::string& address, int port, int64_t most_us, const HttpWait& wait) {
  OC_TRY(fd, BeginConnect(address, port));
  OC_TRY(ready, wait.For(fd.Get(), POLLOUT, most_us));
  if (ready == 0) return Fail(ErrorCode::kUnavailable, "it does not answer");
  OC_TRY_VOID(ConnectOutcome(fd));
  return fd;
}

}  // namespace

Result<Fd> ConnectHttp(const HttpOrigin& origin, const HttpWait& wait) {
  OC_TRY(addresses, AddressesOf(origin.host, wait));
  Error last;
  for (size_t i = 0; i < addresses.size() && wait.LeftUs() > 0; ++i) {
    const bool others = i + 1 < addresses.size();
    auto fd = ConnectTo(addresses[i], origin.port, others ? kPerAddressUs : HttpDeadlines::kNever, wait);
    if (fd) return fd;
    if (fd.error().code != ErrorCode::kUnavailable) return fd;
    last = std::move(fd).error();
  }
  return Fail(ErrorCode::kUnavailable,
              StrCat("cannot reach '", wait.peer(), "': ",
                     std::string_view(last.message).starts_with("cannot connect: ") ? last.message.substr(16)
                                                                                    : last.message));
}

}  // namespace overcap
