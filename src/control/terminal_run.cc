// SPDX-License-Identifier: Apache-2.0
#include "control/terminal_run.h"

#include <algorithm>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>

#include "sys/pipe.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/signal_inbox.h"

namespace overcap {
namespace {

constexpr int kTickMs = 1000, kQuickTickMs = 50;
constexpr int kTicksToEnd = 30;   // between the passed-on signal and KILL
constexpr int kTicksToLeave = 5;  // for a program whose caller has left

// A program that has taken over reads single keys.
bool TakenOver() {
  termios modes{};
  return tcgetattr(STDIN_FILENO, &modes) == 0 && (modes.c_lflag & ICANON) == 0;
}

// Whether the keys of one reach this process.
bool HasTerminal() {
  const Fd terminal(open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  return terminal.Valid() && tcgetpgrp(terminal.Get()) == getpgrp();
}

class Beside {
 public:
  Beside(const std::string& program, const TerminalWatch& watch, SignalInbox inbox)
      : watch_(watch), filter_(program, watch.is_chatter), inbox_(std::move(inbox)) {}

  Result<TerminalRun> Run(const Replacement& plan);

 private:
  Result<void> Start(const Replacement& plan);
  void HeedSignals();
  void ReadErrors();
  void Tick();
  bool Ended(int* status);

  const TerminalWatch& watch_;
  StderrFilter filter_;
  SignalInbox inbox_;
  Fd errors_;
  Spawned child_;
  TerminalRun run_;
  bool taken_over_ = false;
  int passed_on_ = 0;  // ticks since a signal to end was
  int left_ = 0;       // ticks since the caller has
  int quick_ticks_ = 0;
};

Result<void> Beside::Start(const Replacement& plan) {
  OC_TRY(ends, MakePipe());
  errors_ = std::move(ends.read);
  fcntl(errors_.Get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  request.program = plan.program;
  request.argv = plan.argv;
  request.env = plan.environment;
  request.cwd = plan.folder;
  request.stdin_fd = STDIN_FILENO, request.stdout_fd = STDOUT_FILENO, request.stderr_fd = ends.write.Get();
  request.group = ProcessGroup::kInherit;
  request.want_pidfd = true;
  request.parent_death_signal = SIGTERM;
  OC_TRY(spawned, Spawn(request));
  child_ = std::move(spawned);
  return {};
}

void Beside::HeedSignals() {
  for (const int signal : inbox_.Take()) {
    if (signal == SIGHUP && watch_.caller_leaves) {
      left_ = std::max(left_, 1);
    } else if (signal == SIGTERM || signal == SIGHUP) {
      kill(child_.pid, signal);
      passed_on_ = std::max(passed_on_, 1);
    } else {
      // A terminal has told the program, too.
      if (!HasTerminal()) kill(child_.pid, signal);
      if (!taken_over_) run_.interrupted = true;
    }
  }
}

void Beside::ReadErrors() {
  char bytes[4096];
  ssize_t size;
  while ((size = read(errors_.Get(), bytes, sizeof bytes)) > 0) {
    const std::string passed = filter_.Take({bytes, static_cast<size_t>(size)});
    if (left_ == 0) (void)WriteAll(STDERR_FILENO, passed);
  }
  if (size == 0) errors_.Reset();
}

void Beside::Tick() {
  if (left_ > 0 && passed_on_ == 0 && ++left_ > kTicksToLeave) {
    kill(child_.pid, SIGTERM);
    passed_on_ = 1;
  }
  if (passed_on_ > 0 && ++passed_on_ > kTicksToEnd) kill(child_.pid, SIGKILL);
  if (taken_over_) return;
  taken_over_ = TakenOver();
  if (taken_over_ && watch_.taken_over) watch_.taken_over();
  // At first it looks more often than it speaks: most sessions begin at once.
  const bool speaks = quick_ticks_ >= kTickMs / kQuickTickMs;
  if (!speaks) ++quick_ticks_;
  if (!taken_over_ && speaks && watch_.waiting) watch_.waiting();
}

bool Beside::Ended(int* status) {
  return waitpid(child_.pid, status, WNOHANG) == child_.pid;
}

Result<TerminalRun> Beside::Run(const Replacement& plan) {
  OC_TRY_VOID(Start(plan));
  int status = 0;
  while (!Ended(&status)) {
    pollfd waits[] = {
        {child_.pidfd.Get(), POLLIN, 0}, {inbox_.PollFd(), POLLIN, 0}, {errors_.Get(), POLLIN, 0}};
    const bool quick = !taken_over_ && quick_ticks_ < kTickMs / kQuickTickMs;
    const int ready = poll(waits, errors_ ? 3 : 2, quick ? kQuickTickMs : kTickMs);
    HeedSignals();
    if (errors_) ReadErrors();
    if (ready == 0) Tick();
  }
  if (errors_) ReadErrors();
  if (left_ == 0) (void)WriteAll(STDERR_FILENO, filter_.Finish());
  run_.exit_status = ProcessEndOf(status).exit_status;
  return run_;
}

}  // namespace

bool StderrFilter::MayBeChatter(std::string_view line) const {
  if (!is_chatter_ || line_begun_) return false;
  const size_t both = std::min(line.size(), start_.size());
  return line.substr(0, both) == std::string_view(start_).substr(0, both);
}

std::string StderrFilter::Passed(std::string_view line) const {
  std::string_view text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return MayBeChatter(line) && is_chatter_(text) ? "" : std::string(line);
}

std::string StderrFilter::Take(std::string_view bytes) {
  open_ += bytes;
  std::string passed;
  size_t from = 0;
  for (size_t end; (end = open_.find('\n', from)) != std::string::npos; from = end + 1) {
    passed += Passed(std::string_view(open_).substr(from, end + 1 - from));
    line_begun_ = false;
  }
  open_.erase(0, from);
  if (open_.empty() || MayBeChatter(open_)) return passed;
  line_begun_ = true;
  return passed + std::exchange(open_, "");
}

std::string StderrFilter::Finish() {
  return open_.empty() ? "" : Passed(std::exchange(open_, ""));
}

Result<TerminalRun> RunOnTerminal(const Replacement& plan, const TerminalWatch& watch) {
  OC_TRY(inbox, SignalInbox::Make({SIGINT, SIGQUIT, SIGTERM, SIGHUP}));
  return Beside(plan.argv.empty() ? "" : plan.argv[0], watch, std::move(inbox)).Run(plan);
}

}  // namespace overcap
