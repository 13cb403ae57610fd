// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launcher_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace overcap {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kShowChunk = 4096;      // what a pipe that polls writable takes without waiting
constexpr size_t kMostToShow = 4 << 20;  // more is not read before that is shown
constexpr size_t kMostHeld = 64 << 10;
constexpr int kReapSteps = 5000;  // milliseconds; one that even KILL cannot end is left to the kernel
constexpr std::string_view kNoLink = "no link to 'overcap launch'";

Result<Fd> MakePipe(Fd* read_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  read_end->Reset(ends[0]);
  (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Fd(ends[1]);
}

}  // namespace

// Whatever of it is left in its group goes with it. It is waited for only now, so that its number is its own.
LauncherProcess::~LauncherProcess() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  for (int i = 0; i < kReapSteps && waitpid(pid_, nullptr, WNOHANG) == 0; ++i) usleep(1000);
}

Result<void> LauncherProcess::Start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                                    const std::string& folder, const std::string& log_folder) {
  const std::string log = log_folder + "/launcher.log";
  log_ = Fd(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log_) return Fail(ErrnoError(errno, "cannot write '" + log + "'"));
  OC_TRY(out, MakePipe(&out_));
  OC_TRY(err, MakePipe(&err_));
  SpawnRequest request;
  request.argv = argv;
  request.env = env;
  request.cwd = folder;
  if (isatty(STDIN_FILENO) == 0) request.stdin_fd = STDIN_FILENO;  // a terminal stays ours
  request.stdout_fd = out.Get();
  request.stderr_fd = err.Get();
  request.parent_death_signal = SIGTERM;
  request.want_pidfd = true;
  OC_TRY(spawned, Spawn(request));
  pid_ = spawned.pid;
  pidfd_ = std::move(spawned.pidfd);
  return {};
}

void LauncherProcess::AddFds(std::vector<pollfd>* fds) const {
  if (!end_ && pidfd_) fds->push_back({pidfd_.Get(), POLLIN, 0});
  const bool full = shown_[0].size() + shown_[1].size() > kMostToShow;
  if (out_ && !full) fds->push_back({out_.Get(), POLLIN, 0});
  if (err_ && !full) fds->push_back({err_.Get(), POLLIN, 0});
  for (int i = 0; i < 2; ++i) {
    if (!shown_[i].empty()) fds->push_back({STDOUT_FILENO + i, POLLOUT, 0});
  }
}

bool LauncherProcess::Step() {
  const bool full = shown_[0].size() + shown_[1].size() > kMostToShow;
  const bool said_out = !full && Take(&out_, false), said_err = !full && Take(&err_, true);
  Show();
  siginfo_t info{};
  if (pid_ > 0 && !end_ && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    end_ = info.si_code == CLD_EXITED ? ProcessEnd{info.si_status, 0}
                                      : ProcessEnd{128 + info.si_status, info.si_status};
  }
  return said_out || said_err;
}

bool LauncherProcess::Take(Fd* fd, bool is_error) {
  char chunk[kReadBytes];
  const ssize_t size = *fd ? read(fd->Get(), chunk, sizeof chunk) : -1;
  if (size == 0 || (size < 0 && *fd && errno != EAGAIN && errno != EINTR)) {
    fd->Reset();
    if (is_error) words_.End();
  }
  if (size <= 0) return false;
  const std::string_view bytes(chunk, static_cast<size_t>(size));
  (void)!write(log_.Get(), bytes.data(), bytes.size());
  words_.Feed(bytes);
  ranks_speak_ = ranks_speak_ || bytes.find(kNoLink) != bytes.npos;
  if (hushed_) return true;
  if (!is_error) {
    shown_[0].append(bytes);
  } else if (show_errors_) {
    shown_[1].append(bytes);
  } else {
    held_errors_.append(bytes);
    if (held_errors_.size() > kMostHeld) held_errors_.erase(0, held_errors_.size() - kMostHeld);
  }
  return true;
}

void LauncherProcess::ShowErrors() {
  show_errors_ = true;
  shown_[1].append(held_errors_);
  held_errors_.clear();
}

void LauncherProcess::Show() {
  for (int i = 0; i < 2; ++i) {
    pollfd entry{STDOUT_FILENO + i, POLLOUT, 0};
    if (shown_[i].empty() || poll(&entry, 1, 0) != 1) continue;
    const ssize_t size = write(STDOUT_FILENO + i, shown_[i].data(), std::min(shown_[i].size(), kShowChunk));
    if (size > 0) shown_[i].erase(0, static_cast<size_t>(size));
    if (size < 0 && errno != EAGAIN && errno != EINTR) shown_[i].clear();  // nobody reads it any more
  }
}

void LauncherProcess::ShowRest() {
  while (!shown_[0].empty() || !shown_[1].empty()) {
    std::vector<pollfd> fds;
    for (int i = 0; i < 2; ++i) {
      if (!shown_[i].empty()) fds.push_back({STDOUT_FILENO + i, POLLOUT, 0});
    }
    if (poll(fds.data(), fds.size(), 5000) <= 0) return;
    Show();
  }
}

void LauncherProcess::Signal(int sig) const {
  if (pid_ > 0 && !end_) kill(-pid_, sig);
}

void LauncherProcess::CloseOutput() {
  out_.Reset();
  err_.Reset();
  words_.End();
}

}  // namespace overcap
