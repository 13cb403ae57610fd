// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/stream_io.h"

#include <cerrno>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

namespace overcap {
namespace {

tl::unexpected<Error> Closed() {
  return Fail(ErrorCode::kUnavailable, "the other end closed the connection");
}

}  // namespace

Result<void> WaitForStream(int fd, short events, const StreamPatience& patience) {
  for (;;) {
    pollfd fds[2] = {{fd, events, 0}, {patience.stop_fd, POLLIN, 0}};
    const int ready = poll(fds, 2, patience.silence_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Fail(ErrnoError(errno, "cannot wait for a connection"));
    if (fds[1].revents != 0) return Fail(ErrorCode::kConflict, "stopped");
    if (ready == 0) return Fail(ErrorCode::kUnavailable, "the other end is silent");
    return {};
  }
}

Result<void> SendBytes(int fd, std::string_view bytes, bool more_follows, const StreamPatience& patience) {
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more_follows ? MSG_MORE : 0);
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), flags);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      OC_TRY_VOID(WaitForStream(fd, POLLOUT, patience));
    } else if (errno != EINTR) {
      return Closed();
    }
  }
  return {};
}

Result<void> ReceiveBytes(int fd, char* out, size_t count, const StreamPatience& patience) {
  while (count > 0) {
    const ssize_t n = recv(fd, out, count, MSG_DONTWAIT);
    if (n > 0) {
      out += n;
      count -= static_cast<size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      return Closed();
    } else if (errno == EAGAIN) {
      OC_TRY_VOID(WaitForStream(fd, POLLIN, patience));
    }
  }
  return {};
}

Result<void> SendFileRange(int fd, int file, int64_t offset, size_t count, const StreamPatience& patience) {
  off_t at = offset;
  while (count > 0) {
    const ssize_t n = sendfile(fd, file, &at, count);
    if (n > 0) {
      count -= static_cast<size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      OC_TRY_VOID(WaitForStream(fd, POLLOUT, patience));
    } else if (n == 0 || errno != EINTR) {
      return Closed();  // or the file became shorter: what was promised cannot be sent any more
    }
  }
  return {};
}

}  // namespace overcap
