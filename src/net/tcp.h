// SPDX-License-Identifier: Apache-2.0
// TCP as the link between the hosts of a launch needs it: nothing here waits, and no names are resolved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

struct TcpListener {
  Fd fd;
  int port = 0;
};

// On every address of this host, IPv6 and IPv4, at a free port.
Result<TcpListener> ListenTcp();

// The next waiting connection or nullopt; non-blocking, watched for a dead other end.
Result<std::optional<Fd>> AcceptTcp(const Fd& listener);

// Begins to connect to a literal address; wait for POLLOUT, then ask ConnectOutcome(). kUsage when it is
// none.
Result<Fd> BeginConnect(const std::string& address, int port);
Result<void> ConnectOutcome(const Fd& fd);  // kUnavailable says why not

std::string LocalAddressOf(const Fd& connection);  // "10.0.0.3", "fd00::3"; "" when it has none
bool IsLoopback(const std::string& address);

// Of the interfaces that are up, without loopback and link-local ones; those that look like bridges to
// containers and virtual machines last.
std::vector<std::string> OwnAddresses();

// Those of them in whose network one of another machine's addresses lies: no router is on the way. Networks
// that each machine has for itself (of containers and virtual machines) do not count, nor addresses that the
// other one has, too.
std::vector<std::string> OwnAddressesNear(const std::vector<std::string>& others);

}  // namespace overcap
