// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_process.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <stop_token>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/log_bound.h"
#include "sys/own_program.h"
#include "sys/variables.h"

namespace overcap {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  return raw;
}

// Keeps our output, which is the log of this node, within the job's bound.
void BoundOutput(const std::stop_token& stop, const Variables& variables) {
  const PosixClock clock;
  const int64_t max = ParseInt(variables.Get("OVERCAP_LOGS_MAX")).value_or(kLogsMaxByFileSystem);
  LogBound bound({{STDOUT_FILENO, "this node"}}, max, clock.MonotonicUs());
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock<std::mutex> lock(mutex);
  while (!stop.stop_requested() && bound.DueUs() != INT64_MAX) {
    const auto pause = std::chrono::microseconds(bound.DueUs() - clock.MonotonicUs());
    stopped.wait_for(lock, stop, pause, [] { return false; });
    bound.LookIfDue(clock.MonotonicUs());
  }
  bound.Look(clock.MonotonicUs());
}

}  // namespace

Result<void> WriteTo(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot make log '", path, "'")));
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (dup2(file.Get(), fd) < 0) return Fail(ErrnoError(errno, "cannot write to a log"));
  }
  return {};
}

Result<int> RunToEnd(NodeProcess process) {
  const std::string program = OwnProgram();
  const std::vector<char*> argv = Pointers(process.argv), env = Pointers(process.env);
  const pid_t own = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Fail(ErrnoError(errno, "cannot start 'overcap launch'"));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != own) _exit(126);  // who started it died before that
    if (!process.folder.empty() && chdir(process.folder.c_str()) != 0) _exit(126);
    execve(program.c_str(), argv.data(), env.data());
    _exit(127);
  }
  const std::jthread bounded(BoundOutput, Variables(process.env));
  for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) signal(sig, SIG_IGN);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return Fail(ErrnoError(errno, "cannot wait for 'overcap launch'"));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace overcap
