// SPDX-License-Identifier: Apache-2.0
#include "agent/beside.h"

#include <cerrno>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/process.h"
#include "sys/variables.h"

namespace overcap {

Result<int> RunBeside(const std::vector<std::string>& argv) {
  HeedChildren();
  SpawnRequest request;
  request.argv = argv;
  request.env = Variables::OfThisProcess().entries();
  request.stdin_fd = STDIN_FILENO;
  request.stdout_fd = STDOUT_FILENO;
  request.stderr_fd = STDERR_FILENO;
  request.group = ProcessGroup::kSession;
  request.parent_death_signal = SIGKILL;
  OC_TRY(spawned, Spawn(request));
  for (const int sig : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) signal(sig, SIG_IGN);
  int status = 0;
  while (waitpid(spawned.pid, &status, 0) < 0) {
    if (errno != EINTR) return Fail(ErrnoError(errno, StrCat("cannot wait for '", argv[0], "'")));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace overcap
