// SPDX-License-Identifier: Apache-2.0
#include "sys/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/fd.h"

namespace overcap {

int FreePort() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd || bind(fd.Get(), generic, size) != 0 || getsockname(fd.Get(), generic, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

}  // namespace overcap
