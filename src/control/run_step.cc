// SPDX-License-Identifier: Apache-2.0
#include "control/run_step.h"

#include <cerrno>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "control/stop_signals.h"

namespace overcap {
namespace {

constexpr int kLateMs = 5, kLateSlices = 40;
constexpr int kSliceMs = 100;
constexpr int kTermAfterMs = 2'000;
constexpr int kKillAfterMs = 10'000;
constexpr int kGiveUpAfterMs = 20'000;

bool IsSet(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

// False when it could not even be killed.
bool WaitFor(const Spawned& child, const std::atomic<bool>* stop) {
  for (int stopped_ms = 0;;) {
    pollfd entry{child.pidfd.Get(), POLLIN, 0};
    if (poll(&entry, 1, kSliceMs) > 0) return true;
    if (!IsSet(stop)) continue;
    stopped_ms += kSliceMs;
    if (stopped_ms == kTermAfterMs) kill(child.pid, SIGTERM);
    if (stopped_ms == kKillAfterMs) kill(child.pid, SIGKILL);
    if (stopped_ms > kGiveUpAfterMs) return false;
  }
}

}  // namespace

Result<void> RunStep(SpawnRequest request, const std::atomic<bool>* stop) {
  const std::string line = ShellJoin(request.argv);
  request.stdout_fd = request.stderr_fd = STDERR_FILENO;
  request.group = ProcessGroup::kInherit;
  request.want_pidfd = true;
  OC_TRY(child, Spawn(request));
  if (!WaitFor(child, stop)) return Fail(ErrorCode::kUnavailable, StrCat("'", line, "' would not end"));
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0) {
    if (errno != EINTR) return Fail(ErrnoError(errno, StrCat("cannot wait for '", line, "'")));
  }
  const ProcessEnd end = ProcessEndOf(status);
  // A terminal's Ctrl-C reaches both: the program may be gone a moment before it is known here, and many end
  // with a status of their own then. One that died by it was stopped, whoever is told first.
  for (int i = 0; stop != nullptr && !end.ok() && !IsSet(stop) && i < kLateSlices; ++i)
    poll(nullptr, 0, kLateMs);
  if (end.exit_status == 128 + SIGINT) StopSignals::TakeAsCome(SIGINT);
  if (IsSet(stop)) return Fail(ErrorCode::kConflict, StrCat("'", line, "' was stopped"));
  if (end.ok()) return {};
  return Fail(ErrorCode::kConflict, StrCat("'", line, "' failed with status ", end.exit_status));
}

}  // namespace overcap
