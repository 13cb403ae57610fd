// SPDX-License-Identifier: Apache-2.0
#include "sys/process.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/file_limit.h"
#include "sys/pidfd_info.h"

namespace overcap {
namespace {

enum class Stage { kGroup, kAnnounce, kCgroup, kCpus, kFolder, kDescriptors, kExec };

// All that the child needs, made by the parent: the child shares its memory and may call the kernel, nothing
// else.
struct Child {
  const SpawnRequest* request = nullptr;
  const char* program = nullptr;
  std::vector<char*> argv, env;
  sigset_t mask;
  cpu_set_t cpus;
  pid_t parent = 0;
  Stage failed_at = Stage::kExec;
  int failed_item = 0;
  int error = 0;  // errno; 0 after a good exec
};

constexpr size_t kStackBytes = 256 << 10;
constexpr int64_t kDieUs = 1'000'000;  // after a KILL; a kernel that holds it longer is not waited for

bool FailAt(Child* child, Stage stage, int item = 0) {
  child->error = errno;
  child->failed_at = stage;
  child->failed_item = item;
  return false;
}

bool JoinCgroups(Child* child) {
  const auto& files = child->request->cgroup_procs;
  for (size_t i = 0; i < files.size(); ++i) {
    const int fd = open(files[i].c_str(), O_WRONLY | O_CLOEXEC);
    const bool joined = fd >= 0 && write(fd, "0\n", 2) == 2;
    if (!joined) return FailAt(child, Stage::kCgroup, static_cast<int>(i));
    close(fd);
  }
  return true;
}

// Moves the three descriptors to 0, 1, 2; sources that stand there already are lifted out of the way first.
bool PlaceDescriptors(Child* child) {
  int fds[3] = {child->request->stdin_fd, child->request->stdout_fd, child->request->stderr_fd};
  for (int i = 0; i < 3; ++i) {
    if (fds[i] < 0) fds[i] = open("/dev/null", (i == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (fds[i] >= 0 && fds[i] < 3) fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    if (fds[i] < 0) return FailAt(child, Stage::kDescriptors);
  }
  for (int i = 0; i < 3; ++i) {
    if (dup2(fds[i], i) < 0) return FailAt(child, Stage::kDescriptors);
  }
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  return true;
}

bool Prepare(Child* child) {
  const SpawnRequest& request = *child->request;
  if (request.group == ProcessGroup::kSession && setsid() < 0) return FailAt(child, Stage::kGroup);
  if (request.group == ProcessGroup::kGroup && setpgid(0, 0) != 0) return FailAt(child, Stage::kGroup);
  if (request.announce_fd >= 0) {
    const int64_t pid = getpid();
    if (write(request.announce_fd, &pid, sizeof pid) != sizeof pid) return FailAt(child, Stage::kAnnounce);
  }
  if (!JoinCgroups(child)) return false;
  if (!request.cpus.empty() && sched_setaffinity(0, sizeof child->cpus, &child->cpus) != 0) {
    return FailAt(child, Stage::kCpus);
  }
  if (!request.cwd.empty() && chdir(request.cwd.c_str()) != 0) return FailAt(child, Stage::kFolder);
  return PlaceDescriptors(child);
}

// What the program shall have but nothing before it needs; best effort.
void SetLimits(const SpawnRequest& request) {
  if (request.umask >= 0) umask(static_cast<mode_t>(request.umask));
  const int64_t soft = request.nofile_soft > 0 ? request.nofile_soft : FileLimitToPassOn();
  rlimit files{};
  if (soft <= 0 || getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(soft), files.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
}

int RunChild(void* arg) {
  Child* child = static_cast<Child*>(arg);
  if (!Prepare(child)) _exit(127);
  if (child->request->parent_death_signal != 0) {
    prctl(PR_SET_PDEATHSIG, child->request->parent_death_signal);
    if (getppid() != child->parent) _exit(127);  // the parent died before that
  }
  SetLimits(*child->request);
  if (child->request->default_signals) SetDefaultSignals();
  sigprocmask(SIG_SETMASK, &child->mask, nullptr);
  execve(child->program, child->argv.data(), child->env.data());
  FailAt(child, Stage::kExec);
  _exit(127);
}

// The child's stack, made once: vfork suspends the caller until the child no longer needs it.
char* ChildStackTop() {
  static char* const stack = [] {
    void* memory =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }();
  return stack == nullptr ? nullptr : stack + kStackBytes;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

Error ExecError(int error, const std::string& program) {
  const std::string name = StrCat("command '", program, "'");
  if (error == ENOENT && access(program.c_str(), F_OK) == 0) {
    return {ErrorCode::kNotFound, StrCat(name, " names an interpreter that does not exist"),
            "look at the first line of the file"};
  }
  if (error == ENOENT || error == ENOTDIR) return {ErrorCode::kNotFound, StrCat(name, " does not exist"), ""};
  if (error == EACCES || error == EPERM)
    return {ErrorCode::kDenied, StrCat(name, " may not be executed"), ""};
  if (error == ENOEXEC) {
    return {ErrorCode::kDenied, StrCat(name, " is no program and has no '#!' line"),
            "begin the script with a line such as '#!/bin/sh'"};
  }
  if (error == E2BIG)
    return {ErrorCode::kUsage, StrCat(name, ": arguments and environment are too large"), ""};
  return ErrnoError(error, StrCat("cannot execute '", program, "'"));
}

Error SpawnError(const Child& child) {
  const SpawnRequest& request = *child.request;
  switch (child.failed_at) {
    case Stage::kExec:
      return ExecError(child.error, child.program);
    case Stage::kFolder:
      return ErrnoError(child.error, StrCat("cannot enter folder '", request.cwd, "'"));
    case Stage::kCgroup:
      return ErrnoError(child.error,
                        StrCat("cannot join cgroup '", request.cgroup_procs[child.failed_item], "'"));
    case Stage::kCpus:
      return ErrnoError(child.error, "cannot pin to the processors");
    case Stage::kAnnounce:
      return ErrnoError(child.error, StrCat("cannot start '", child.program,
                                            "': the process that guards it does not hear"));
    case Stage::kGroup:
    case Stage::kDescriptors:
      return ErrnoError(child.error, StrCat("cannot prepare '", child.program, "'"));
  }
  return ErrnoError(child.error, "cannot spawn");
}

void FillSets(Child* child) {
  sigemptyset(&child->mask);
  for (int sig : child->request->blocked_signals) sigaddset(&child->mask, sig);
  CPU_ZERO(&child->cpus);
  for (int cpu : child->request->cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &child->cpus);
  }
}

// All signals are blocked meanwhile, so that no handler of ours runs in the child.
Result<Spawned> Clone(Child* child) {
  char* const stack = ChildStackTop();
  if (stack == nullptr) return Fail(ErrnoError(ENOMEM, "cannot spawn"));
  sigset_t all, before;
  sigfillset(&all);
  static std::mutex turn;  // guards the child's stack: threads of one process may start others
  const std::lock_guard<std::mutex> lock(turn);
  sigprocmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  const int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (child->request->want_pidfd ? CLONE_PIDFD : 0);
  const pid_t pid = clone(RunChild, stack, flags, child, &pidfd);
  const int clone_error = errno;
  Spawned spawned{pid, Fd(child->request->want_pidfd && pid > 0 ? pidfd : -1)};
  if (pid > 0 && child->error != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;  // it has exited: this does not block
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return Fail(ErrnoError(clone_error, "cannot start a process"));
  if (child->error != 0) return Fail(SpawnError(*child));
  return spawned;
}

bool TookEnd(pid_t child, int64_t timeout_us) {
  const PosixClock clock;
  const int64_t end_us = clock.MonotonicUs() + timeout_us;
  const auto pidfd = OpenPidfd(child);
  for (;;) {
    const pid_t ended = waitpid(child, nullptr, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    const int64_t left_us = end_us - clock.MonotonicUs();
    if (left_us <= 0) return false;
    // A kernel that is too old for it only lets time pass.
    pollfd end{pidfd ? pidfd->Get() : -1, POLLIN, 0};
    (void)poll(&end, 1, static_cast<int>(std::min<int64_t>(left_us / 1000 + 1, pidfd ? 1000 : 5)));
  }
}

}  // namespace

std::string_view PathOf(const std::vector<std::string>& env) {
  for (std::string_view entry : env) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

void SetDefaultSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int sig = 1; sig < NSIG; ++sig) sigaction(sig, &action, nullptr);
}

bool EndedWithin(pid_t child, int64_t timeout_us) {
  if (TookEnd(child, timeout_us)) return true;
  kill(child, SIGKILL);
  (void)TookEnd(child, kDieUs);
  return false;
}

void HeedChildren() {
  signal(SIGCHLD, SIG_DFL);
}

Result<Spawned> Spawn(const SpawnRequest& request) {
  if (request.argv.empty()) return Fail(ErrorCode::kUsage, "no command was given");
  std::string program = request.program;
  if (program.empty()) {
    OC_TRY(found, ResolveProgram(request.argv[0], PathOf(request.env), request.cwd));
    program = std::move(found);
  }
  Child child;
  child.request = &request;
  child.program = program.c_str();
  child.argv = Pointers(request.argv);
  child.env = Pointers(request.env);
  child.parent = getpid();
  FillSets(&child);
  return Clone(&child);
}

ProcessEnd ProcessEndOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {128 + WTERMSIG(wait_status), WTERMSIG(wait_status)};
  return {WEXITSTATUS(wait_status), 0};
}

}  // namespace overcap
