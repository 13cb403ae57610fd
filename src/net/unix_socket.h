// SPDX-License-Identifier: Apache-2.0
// Private stream sockets in the file system. Paths may be longer than the 107 bytes that the kernel's address
// takes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Listens at `path`, non-blocking. Its folder (made if missing; it must be ours) becomes 0700 and the socket
// is 0600 from its first moment. A stale socket is replaced; kConflict when somebody listens there or it is
// no socket. Two processes that do this at once must agree by a lock.
Result<Fd> ListenUnix(const std::string& path);
// The same for everybody on the machine: the folder, which must be ours and writable for nobody else, becomes
// 0755 and the socket is 0666. Who connects is asked of the kernel.
Result<Fd> ListenUnixForAll(const std::string& path);

// The next waiting connection, non-blocking, or nullopt when there is none. kUnavailable when out of
// descriptors.
Result<std::optional<Fd>> AcceptUnix(const Fd& listener);

// A blocking connection. kNotFound when there is no socket, kUnavailable when nobody listens or accepts in
// time.
Result<Fd> ConnectUnix(const std::string& path, std::chrono::milliseconds timeout);

// Who is at the other end, as the kernel has seen it connect.
struct SocketPeer {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
  std::vector<gid_t> groups;  // supplementary ones, ascending
};
Result<SocketPeer> PeerOf(const Fd& connection);

// The user at the other end (SO_PEERCRED).
Result<uid_t> PeerUid(const Fd& connection);

}  // namespace overcap
