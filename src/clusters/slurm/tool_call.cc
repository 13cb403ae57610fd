// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_call.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/large_heap.h"
#include "sys/pipe.h"

namespace overcap {
namespace {

constexpr size_t kMaxErr = 64 << 10;
constexpr size_t kChunk = 64 << 10;
constexpr int kPipeBytes = 1 << 20;
constexpr size_t kLongAnswer = 256 << 10;
constexpr int kLongPauseMs = 1;
constexpr size_t kMemoryOfAnswer = 6, kWarmed = 2 << 20;

using Time = std::chrono::steady_clock::time_point;

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

bool Reap(const Spawned& child, Time deadline, int* status) {
  pollfd entry{child.pidfd.Get(), POLLIN, 0};
  if (!Wait(&entry, 1, deadline)) return false;
  while (waitpid(child.pid, status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

class RealToolRun : public ToolRun {
 public:
  RealToolRun(Time deadline, size_t max_out) : deadline_(deadline), max_out_(max_out) {}
  ~RealToolRun() override {
    if (child_.pid > 0) Kill();
  }

  Result<void> Start(SpawnRequest request, bool with_input);
  void Give(std::string_view input) override;
  Result<std::string> Line() override;
  Result<ToolAnswer> Finish() override;
  void Leave() override { child_.pid = -1; }

 private:
  enum class Until { kLine, kEnd };
  bool Read(Until until);
  bool WarmMore();
  void Kill();
  tl::unexpected<Error> Late();

  const Time deadline_;
  const size_t max_out_;
  std::string name_;
  Spawned child_;
  Fd in_, out_, err_;
  ToolAnswer answer_;
  size_t warmed_ = 0;
};

// A socket and not a pipe: who writes to one whose reader is gone can do without a signal.
Result<void> RealToolRun::Start(SpawnRequest request, bool with_input) {
  OC_TRY(out, MakePipe());
  OC_TRY(err, MakePipe());
  (void)fcntl(out.read.Get(), F_SETPIPE_SZ, kPipeBytes);  // fewer wake-ups for long lists; may be refused
  int ends[2] = {-1, -1};
  if (with_input && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(ErrnoError(errno, "cannot make a socket"));
  in_.Reset(ends[0]);
  const Fd their_in(ends[1]);
  request.stdin_fd = their_in.Get();
  request.stdout_fd = out.write.Get(), request.stderr_fd = err.write.Get();
  request.group = ProcessGroup::kGroup;
  request.want_pidfd = true;
  request.parent_death_signal = SIGKILL;
  name_ = request.argv[0];
  OC_TRY(child, Spawn(request));
  child_ = std::move(child);
  out_ = std::move(out.read), err_ = std::move(err.read);
  return {};
}

void RealToolRun::Give(std::string_view input) {
  pollfd entry{in_.Get(), POLLOUT, 0};
  while (!input.empty() && Wait(&entry, 1, deadline_)) {
    const ssize_t n = send(in_.Get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) break;
    if (n > 0) input.remove_prefix(static_cast<size_t>(n));
  }
  in_.Reset();
}

// A long answer is going to take several times its size of memory.
bool RealToolRun::WarmMore() {
  if (warmed_ > kMemoryOfAnswer * answer_.out.size() || !WarmLargeHeap()) return false;
  warmed_ += kWarmed;
  return true;
}

// Until there is a line or both ends are closed. False when the time is over or there is too much.
bool RealToolRun::Read(Until until) {
  while (out_ || err_) {
    if (until == Until::kLine && (!out_ || answer_.out.find('\n') != std::string::npos)) return true;
    pollfd fds[2] = {{out_.Get(), POLLIN, 0}, {err_.Get(), POLLIN, 0}};
    if (!Wait(fds, 2, deadline_)) return false;
    const size_t before = answer_.out.size();
    if (fds[0].revents != 0 && !ReadMore(out_.Get(), &answer_.out)) out_.Reset();
    // Long lists come in small pieces: to be woken for each would hold their writer up.
    const bool ended = (fds[0].revents & POLLHUP) != 0;
    pollfd only_end{out_.Get(), 0, 0};
    if (!ended && before > kLongAnswer && answer_.out.size() - before < kChunk && out_ && !WarmMore())
      (void)poll(&only_end, 1, kLongPauseMs);
    if (fds[1].revents != 0 && !ReadMore(err_.Get(), &answer_.err)) err_.Reset();
    if (answer_.out.size() > max_out_) return false;
    answer_.err.resize(std::min(answer_.err.size(), kMaxErr));
  }
  return true;
}

void RealToolRun::Kill() {
  int status = 0;
  kill(-child_.pid, SIGKILL);
  (void)Reap(child_, std::chrono::steady_clock::now() + std::chrono::seconds(1), &status);
  child_.pid = -1;
}

tl::unexpected<Error> RealToolRun::Late() {
  Kill();
  const std::string_view why = answer_.out.size() > max_out_ ? "' printed too much" : "' did not end in time";
  return Fail(ErrorCode::kUnavailable, StrCat("'", name_, why));
}

Result<std::string> RealToolRun::Line() {
  if (!Read(Until::kLine)) return Late();
  return answer_.out.substr(0, answer_.out.find('\n') + 1);  // npos + 1: there is none
}

Result<ToolAnswer> RealToolRun::Finish() {
  int status = 0;
  if (!Read(Until::kEnd) || !Reap(child_, deadline_, &status)) return Late();
  child_.pid = -1;
  answer_.end = ProcessEndOf(status);
  return std::move(answer_);
}

Result<std::unique_ptr<RealToolRun>> Start(SpawnRequest request, std::chrono::milliseconds timeout,
                                           size_t max_out, bool with_input) {
  auto run = std::make_unique<RealToolRun>(std::chrono::steady_clock::now() + timeout, max_out);
  OC_TRY_VOID(run->Start(std::move(request), with_input));
  return run;
}

}  // namespace

Result<std::unique_ptr<ToolRun>> StartTool(SpawnRequest request, std::chrono::milliseconds timeout,
                                           size_t max_out) {
  return Start(std::move(request), timeout, max_out, true);
}

Result<ToolAnswer> CallTool(SpawnRequest request, std::chrono::milliseconds timeout, size_t max_out) {
  OC_TRY(run, Start(std::move(request), timeout, max_out, false));
  return run->Finish();
}

}  // namespace overcap
