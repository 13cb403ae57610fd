// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_start.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/workspace.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/pipe.h"
#include "sys/posix_files.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "OVERCAP_AUTO_STARTED";
constexpr int64_t kReadyUs = 60'000'000;
constexpr int kLookMs = 50;

// Something to read the secret from, once.
Result<Fd> SecretFd(const std::string& secret) {
  Fd fd(memfd_create("overcap-secret", MFD_CLOEXEC));
  if (!fd || WriteAll(fd.Get(), secret) != 0 || lseek(fd.Get(), 0, SEEK_SET) != 0) {
    return Fail(ErrnoError(errno, "cannot hand the passphrase on"));
  }
  return fd;
}

Result<Fd> OpenLog(const std::string& path) {
  OC_TRY_VOID(PosixFiles().MakeFolders(path.substr(0, path.rfind('/'))));
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  return fd;
}

// All that comes until the pipe is closed, a line is complete, or it takes too long.
std::string ReadLine(int fd) {
  const PosixClock clock;
  const int64_t until = clock.MonotonicUs() + kReadyUs;
  std::string text;
  while (text.find('\n') == std::string::npos) {
    const int64_t left = until - clock.MonotonicUs();
    pollfd waits{fd, POLLIN, 0};
    if (left <= 0 || (poll(&waits, 1, static_cast<int>(left / 1000)) < 0 && errno != EINTR)) break;
    char buffer[512];
    const ssize_t count = waits.revents != 0 ? read(fd, buffer, sizeof buffer) : 0;
    if (count <= 0 && waits.revents != 0) break;
    text.append(buffer, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return text.substr(0, text.find('\n'));
}

void Pause() {
  poll(nullptr, 0, kLookMs);
}

bool Runs(const AutoState& state) {
  return AutoLockHolder(state.folder) == state.pid;
}

std::string LastWords(const AutoState& state) {
  const std::string what = StrCat("workspace '", state.workspace, "': ");
  const std::string last = state.saved_us == 0
                               ? "there is no backup"
                               : StrCat("the last backup is of ", FormatTimeLocal(state.saved_us));
  if (state.doing != "ended") return StrCat(what, "it is still being saved; ", last);
  if (state.failures == 0 && state.saved_us != 0)
    return StrCat(what, "all is saved in ", state.snapshot.substr(0, 10));
  return StrCat(what, last, ", which may be older than the work: ", state.error);
}

}  // namespace

Result<pid_t> StartAutoService(const AutoStart& start) {
  OC_TRY(log, OpenLog(start.log));
  OC_TRY(ends, MakePipe());
  Fd secret;
  SpawnRequest request;
  request.argv = start.argv;
  Variables variables = start.variables;
  variables.Set(kMark, "1");
  request.env = variables.entries();
  request.cwd = "/";
  request.group = ProcessGroup::kSession;
  request.stdout_fd = ends.write.Get();
  request.stderr_fd = log.Get();
  if (!start.secret.empty()) {
    OC_TRY(fd, SecretFd(start.secret));
    secret = std::move(fd);
    request.stdin_fd = secret.Get();
  }
  // In a job, what the user must know goes to the job's log too, if that is a file: a pipe would keep who
  // reads it waiting for as long as the service lives.
  struct stat info {};
  if (start.in_job && fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode))
    request.stderr_fd = STDERR_FILENO;
  OC_TRY(spawned, Spawn(request));
  ends.write.Reset();
  const std::string line = ReadLine(ends.read.Get());
  // The first of the two forks has ended; the service itself is not ours to wait for.
  int status = 0;
  waitpid(spawned.pid, &status, WNOHANG);
  if (line.starts_with("pid ")) {
    if (const auto pid = ParseInt(std::string_view(line).substr(4))) return static_cast<pid_t>(*pid);
  }
  if (line.empty()) {
    return Fail(ErrorCode::kUnavailable, "the service did not start", StrCat("'", start.log, "' tells more"));
  }
  // "CODE message", as the service says it.
  const size_t blank = line.find(' ');
  return Fail(ErrorCodeFromName(line.substr(0, blank)),
              blank == std::string::npos ? line : line.substr(blank + 1),
              StrCat("'", start.log, "' tells more"));
}

bool LeaveStarter(Variables* variables) {
  if (!variables->Has(kMark)) return false;
  variables->Remove(kMark);
  unsetenv(std::string(kMark).c_str());
  const pid_t child = fork();
  if (child > 0) _exit(0);
  return true;
}

Result<std::optional<AutoState>> StopAutoService(const std::string& root, const std::string& name,
                                                 const std::string& host, const std::string& folder,
                                                 int64_t patience_us) {
  const pid_t pid = AutoLockHolder(folder);
  if (pid == 0) {
    return Fail(ErrorCode::kNotFound, StrCat("nothing saves workspace '", name, "' by itself on this node"));
  }
  if (kill(pid, SIGTERM) != 0 && errno != ESRCH)
    return Fail(ErrnoError(errno, StrCat("cannot end process ", pid)));
  const PosixClock clock;
  for (const int64_t until = clock.MonotonicUs() + patience_us; AutoLockHolder(folder) == pid; Pause()) {
    if (clock.MonotonicUs() > until) return std::optional<AutoState>();
  }
  return std::optional<AutoState>(ReadAutoState(root, name, host).value_or(AutoState{}));
}

std::vector<AutoState> AutoServicesHere(const std::vector<std::string>& roots, const std::string& host) {
  std::vector<AutoState> services;
  for (const std::string& root : roots) {
    for (const std::string& name : WorkspaceBook(root).Names()) {
      auto state = ReadAutoState(root, name, host);
      const bool known = state && std::any_of(services.begin(), services.end(),
                                              [&](const AutoState& one) { return one.pid == state->pid; });
      if (state && !known && state->host == host && Runs(*state)) services.push_back(std::move(*state));
    }
  }
  return services;
}

int WarnAutoServices(const std::vector<std::string>& roots, const std::string& host) {
  int told = 0;
  for (const AutoState& state : AutoServicesHere(roots, host)) told += kill(state.pid, SIGUSR1) == 0;
  return told;
}

std::vector<std::string> EndAutoServices(const std::vector<std::string>& roots, const std::string& host,
                                         const std::string& job, int64_t patience_us) {
  std::vector<AutoState> ending;
  for (AutoState& state : AutoServicesHere(roots, host)) {
    const bool ends = !job.empty() && state.job == job;
    kill(state.pid, ends ? SIGTERM : SIGUSR1);
    if (ends) ending.push_back(std::move(state));
  }
  const PosixClock clock;
  const int64_t until = clock.MonotonicUs() + patience_us;
  const auto any = [&] { return std::any_of(ending.begin(), ending.end(), Runs); };
  while (any() && clock.MonotonicUs() < until) Pause();
  std::vector<std::string> lines;
  for (const AutoState& state : ending) {
    for (const std::string& root : roots) {
      const auto now = ReadAutoState(root, state.workspace, host);
      if (!now || now->pid != state.pid) continue;
      lines.push_back(LastWords(*now));
      break;
    }
  }
  return lines;
}

}  // namespace overcap
