// SPDX-License-Identifier: Apache-2.0
// Private stream sockets in the file system. Paths may be longer than the 107 bytes that the kernel's address
// takes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Listens at `path`, non-blocking. Its folder (made if missing; it must be ours) becomes 0700 and the socket
// is 0600 from its first moment. A stale socket is replaced; kConflict when somebody listens there or it is
// no socket. Two processes that do this at once must agree by a lock.
Result<Fd> ListenUnix(const std::string& path);

// The next waiting connection, non-blocking, or nullopt when there is none. kUnavailable when out of
// descriptors.
Result<std::optional<Fd>> AcceptUnix(const Fd& listener);

// A blocking connection. kNotFound when there is no socket, kUnavailable when nobody listens or accepts in
// time.
Result<Fd> ConnectUnix(const std::string& path, std::chrono::milliseconds timeout);

// The user at the other end (SO_PEERCRED).
Result<uid_t> PeerUid(const Fd& connection);

}  // namespace overcap
