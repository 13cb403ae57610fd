// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_call.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxErr = 64 << 10;
constexpr size_t kChunk = 64 << 10;
constexpr int kPipeBytes = 1 << 20;
constexpr size_t kLongAnswer = 256 << 10;
constexpr useconds_t kLongPauseUs = 1000;

using Time = std::chrono::steady_clock::time_point;

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// False when the time is over.
bool Wait(pollfd* fds, nfds_t count, Time deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const int ready = poll(fds, count, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return false;
  }
}

// Adds what there is to read; false at the end.
bool ReadMore(int fd, std::string* text) {
  char chunk[kChunk];
  const ssize_t n = read(fd, chunk, sizeof chunk);
  if (n > 0) text->append(chunk, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

// Until both ends are closed. False when the time is over or `out` is too long.
bool ReadBoth(int out_fd, int err_fd, Time deadline, size_t max_out, ToolAnswer* answer) {
  pollfd fds[2] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (!Wait(fds, 2, deadline)) return false;
    const size_t before = answer->out.size();
    if (fds[0].revents != 0 && !ReadMore(out_fd, &answer->out)) fds[0].fd = -1;
    // Long lists come in small pieces: to be woken for each would hold their writer up.
    if (before > kLongAnswer && answer->out.size() - before < kChunk && fds[0].fd >= 0) usleep(kLongPauseUs);
    if (fds[1].revents != 0 && !ReadMore(err_fd, &answer->err)) fds[1].fd = -1;
    if (answer->out.size() > max_out) return false;
    answer->err.resize(std::min(answer->err.size(), kMaxErr));
  }
  return true;
}

bool Reap(const Spawned& child, Time deadline, int* status) {
  pollfd entry{child.pidfd.Get(), POLLIN, 0};
  if (!Wait(&entry, 1, deadline)) return false;
  while (waitpid(child.pid, status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

Result<ToolAnswer> CallTool(SpawnRequest request, std::chrono::milliseconds timeout, size_t max_out,
                            const std::function<void()>& meanwhile) {
  const Time deadline = std::chrono::steady_clock::now() + timeout;
  OC_TRY(out, MakePipe());
  OC_TRY(err, MakePipe());
  (void)fcntl(out.read_end.Get(), F_SETPIPE_SZ, kPipeBytes);  // fewer wake-ups for long lists; may be refused
  request.stdout_fd = out.write_end.Get(), request.stderr_fd = err.write_end.Get();
  request.group = ProcessGroup::kGroup;
  request.want_pidfd = true;
  request.parent_death_signal = SIGKILL;
  OC_TRY(child, Spawn(request));
  out.write_end.Reset(), err.write_end.Reset();
  if (meanwhile) meanwhile();
  ToolAnswer answer;
  int status = 0;
  if (ReadBoth(out.read_end.Get(), err.read_end.Get(), deadline, max_out, &answer) &&
      Reap(child, deadline, &status)) {
    answer.end = ProcessEndOf(status);
    return answer;
  }
  kill(-child.pid, SIGKILL);
  (void)Reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(1), &status);
  const std::string_view why = answer.out.size() > max_out ? "' printed too much" : "' did not end in time";
  return Fail(ErrorCode::kUnavailable, StrCat("'", request.argv[0], why));
}

}  // namespace overcap
