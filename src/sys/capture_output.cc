// SPDX-License-Identifier: Apache-2.0
#include "sys/capture_output.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/pipe.h"

namespace overcap {
namespace {

using Time = std::chrono::steady_clock::time_point;

// False when the time is over.
bool WaitReadable(int fd, Time deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return false;
  }
}

// Until the other end is closed; false when the time is over.
bool ReadToEnd(int fd, Time deadline, size_t max_output, std::string* output) {
  char chunk[4096];
  while (WaitReadable(fd, deadline)) {
    const ssize_t n = read(fd, chunk, sizeof chunk);
    if (n == 0) return true;
    if (n < 0 && errno != EINTR && errno != EAGAIN) return true;
    if (n > 0) output->append(chunk, std::min(static_cast<size_t>(n), max_output - output->size()));
  }
  return false;
}

bool Reap(const Spawned& child, Time deadline, int* status) {
  if (!WaitReadable(child.pidfd.Get(), deadline)) return false;
  while (waitpid(child.pid, status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

Result<Captured> CaptureOutput(SpawnRequest request, std::chrono::milliseconds timeout, size_t max_output) {
  const Time deadline = std::chrono::steady_clock::now() + timeout;
  OC_TRY(ends, MakePipe());
  request.stdout_fd = request.stderr_fd = ends.write.Get();
  request.group = ProcessGroup::kGroup;
  request.want_pidfd = true;
  OC_TRY(child, Spawn(request));
  ends.write.Reset();
  Captured captured;
  int status = 0;
  if (ReadToEnd(ends.read.Get(), deadline, max_output, &captured.output) && Reap(child, deadline, &status)) {
    captured.end = ProcessEndOf(status);
    return captured;
  }
  kill(-child.pid, SIGKILL);
  (void)Reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(1), &status);
  return Fail(ErrorCode::kUnavailable, StrCat("'", request.argv[0], "' did not end in time"));
}

}  // namespace overcap
