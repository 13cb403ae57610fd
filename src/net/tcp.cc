// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <functional>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <span>
#include <sys/socket.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

void SetOption(const Fd& fd, int level, int name, int value) {
  setsockopt(fd.Get(), level, name, &value, sizeof value);
}

// A host that lost its power is noticed after half a minute, whoever is silent.
void Prepare(const Fd& fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// nullopt when the text is no address. Port 0 at the address that stands for all: "::" or "0.0.0.0".
std::optional<Address> AddressOf(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *v4;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *v6;
  } else {
    return std::nullopt;
  }
  return address;
}

std::string TextOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  }
  const std::string_view view(text);
  constexpr std::string_view kMapped = "::ffff:";
  return std::string(view.starts_with(kMapped) && view.find('.') != view.npos ? view.substr(kMapped.size())
                                                                              : view);
}

int PortOf(const Fd& fd) {
  Address address;
  address.size = sizeof address.storage;
  if (getsockname(fd.Get(), address.get(), &address.size) != 0) return 0;
  if (address.storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

Result<Fd> BindTo(const std::string& text) {
  auto address = AddressOf(text, 0);
  Fd fd(socket(address->storage.ss_family, kFlags, 0));
  if (!fd) return Fail(ErrnoError(errno, "cannot make a socket"));
  if (address->storage.ss_family == AF_INET6) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.Get(), address->get(), address->size) != 0)
    return Fail(ErrnoError(errno, "cannot bind a port"));
  return fd;
}

// IPv4 alone where the kernel has no IPv6.
Result<Fd> BindToAll() {
  auto both = BindTo("::");
  return both ? std::move(both) : BindTo("0.0.0.0");
}

bool LooksVirtual(std::string_view interface) {
  for (const std::string_view prefix :
       {"docker", "virbr", "br-", "veth", "cni", "podman", "lxc", "tun", "tap"}) {
    if (interface.starts_with(prefix)) return true;
  }
  return false;
}

bool IsLinkLocal(const std::string& address) {
  return address.starts_with("169.254.") || address.starts_with("fe80:");
}

}  // namespace

Result<TcpListener> ListenTcp() {
  OC_TRY(fd, BindToAll());
  if (listen(fd.Get(), SOMAXCONN) != 0) return Fail(ErrnoError(errno, "cannot listen"));
  const int port = PortOf(fd);
  return TcpListener{std::move(fd), port};
}

Result<std::optional<Fd>> AcceptTcp(const Fd& listener) {
  int fd;
  do {
    fd = accept4(listener.Get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (fd < 0 && errno == EAGAIN) return std::optional<Fd>();
  if (fd < 0) return Fail(ErrnoError(errno, "cannot accept a connection"));
  Fd connection(fd);
  Prepare(connection);
  return std::optional<Fd>(std::move(connection));
}

Result<Fd> BeginConnect(const std::string& text, int port) {
  auto address = AddressOf(text, port);
  if (!address) return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no address"));
  Fd fd(socket(address->storage.ss_family, kFlags, 0));
  if (!fd) return Fail(ErrorCode::kUnavailable, StrCat("cannot connect to '", text, "': ", strerror(errno)));
  Prepare(fd);
  if (connect(fd.Get(), address->get(), address->size) != 0 && errno != EINPROGRESS && errno != EINTR) {
    return Fail(ErrorCode::kUnavailable, StrCat("cannot connect to '", text, "': ", strerror(errno)));
  }
  return fd;
}

Result<void> ConnectOutcome(const Fd& fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd.Get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Fail(ErrorCode::kUnavailable, StrCat("cannot connect: ", strerror(error)));
  return {};
}

std::string LocalAddressOf(const Fd& connection) {
  Address address;
  address.size = sizeof address.storage;
  if (getsockname(connection.Get(), address.get(), &address.size) != 0) return "";
  return TextOf(address.get());
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

namespace {

// The bytes of an address; none for another family.
std::span<const uint8_t> BytesOf(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const uint8_t*>(&v4->sin_addr), sizeof v4->sin_addr};
  }
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return {reinterpret_cast<const uint8_t*>(&v6->sin6_addr), sizeof v6->sin6_addr};
  }
  return {};
}

bool InOneNetwork(const ifaddrs& own, const std::string& text) {
  std::optional<Address> other = AddressOf(text, 0);
  if (!other || own.ifa_netmask == nullptr || own.ifa_addr->sa_family != other->get()->sa_family)
    return false;
  const auto a = BytesOf(own.ifa_addr), b = BytesOf(other->get());
  const auto mask =
      reinterpret_cast<const uint8_t*>(  // of the address's family, which is not always written there
          own.ifa_addr->sa_family == AF_INET
              ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(own.ifa_netmask)->sin_addr)
              : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(own.ifa_netmask)->sin6_addr));
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] & mask[i]) != (b[i] & mask[i])) return false;
  }
  return true;
}

std::vector<std::string> OwnAddressesIf(const std::function<bool(const ifaddrs&)>& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<std::string> real, other;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const std::string text = TextOf(each->ifa_addr);
    if (text.empty() || IsLoopback(text) || IsLinkLocal(text) || !wanted(*each)) continue;
    (LooksVirtual(each->ifa_name) ? other : real).push_back(text);
  }
  real.insert(real.end(), other.begin(), other.end());
  return real;
}

}  // namespace

std::vector<std::string> OwnAddresses() {
  return OwnAddressesIf([](const ifaddrs&) { return true; });
}

std::vector<std::string> OwnAddressesNear(const std::vector<std::string>& others) {
  return OwnAddressesIf([&](const ifaddrs& own) {
    if (LooksVirtual(own.ifa_name) ||
        std::find(others.begin(), others.end(), TextOf(own.ifa_addr)) != others.end())
      return false;
    return std::any_of(others.begin(), others.end(),
                       [&](const std::string& other) { return InOneNetwork(own, other); });
  });
}

}  // namespace overcap
