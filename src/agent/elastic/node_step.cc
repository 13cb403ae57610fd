// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_step.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/elastic/lost_head.h"
#include "agent/elastic/node_command.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

Result<void> WriteTo(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot make log '", path, "'")));
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (dup2(file.Get(), fd) < 0) return Fail(ErrnoError(errno, "cannot write to a log"));
  }
  return {};
}

// To its end. Signals of Slurm go to all processes of a task: they are not for us.
Result<int> RunToEnd(std::vector<std::string> argv) {
  const std::string program = OwnProgram();
  std::vector<char*> raw;
  for (std::string& word : argv) raw.push_back(word.data());
  raw.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return Fail(ErrnoError(errno, "cannot start 'overcap launch'"));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(program.c_str(), raw.data());
    _exit(127);
  }
  for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT}) signal(sig, SIG_IGN);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return Fail(ErrnoError(errno, "cannot wait for 'overcap launch'"));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> CheckHead(const std::string& attempt_folder, int node) {
  const auto events = PosixFiles().Read(StrCat(attempt_folder, "/node-", node, "/events.jsonl"));
  if (!events || !EndedWithoutLeader(*events)) return {};
  const Variables variables = Variables::OfThisProcess();
  return SpeakForHead({attempt_folder, std::string(variables.Get("OVERCAP_RDZV_HEAD")),
                       std::string(variables.Get("SLURM_JOB_ID"))});
}

}  // namespace

Result<int> RunNodeStep(const std::vector<std::string>& words) {
  const auto task = ParseInt(Variables::OfThisProcess().Get("SLURM_PROCID"));
  if (words.size() < 2 || words[1] != "launch" || !task || *task < 0 || *task > 1'000'000)
    return Fail(ErrorCode::kUsage, "agent node: this is no task of an elastic job");
  const int node = static_cast<int>(*task) + 1;  // number 0 is not of the step
  std::vector<std::string> argv = WordsOfNode({words.begin() + 1, words.end()}, words[0], node);
  argv.insert(argv.begin(), "overcap");
  OC_TRY_VOID(WriteTo(StrCat(words[0], "/rank-", node, ".log")));
  OC_TRY(status, RunToEnd(std::move(argv)));
  if (status == ExitStatus(ErrorCode::kUnavailable)) OC_TRY_VOID(CheckHead(words[0], node));
  return status;
}

}  // namespace overcap
