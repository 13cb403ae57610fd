// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap::elastic {

// Listens at this very address (literal) and port; 0: any free one. kConflict when somebody does already.
Result<Fd> ListenAt(const std::string& address, int port);
int PortOf(const Fd& socket);  // that it is bound to

bool IsOwnAddress(const std::string& address);  // of this host, loopback among them

// The addresses of a name, within the time. kUnavailable.
Result<std::vector<std::string>> AddressesOf(const std::string& host, int wait_ms);

// Holds a free TCP port of this host, or this one, until it is closed: nobody else gets it.
struct HeldPort {
  Fd socket;
  int port = 0;
};
HeldPort HoldPort(int port = 0);  // port 0 when there is none, or that one is taken

}  // namespace overcap::elastic
