// SPDX-License-Identifier: Apache-2.0
#include "control/as_owner.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/plain_lines.h"
#include "base/text.h"
#include "sys/become_user.h"
#include "sys/limits.h"
#include "sys/own_program.h"
#include "sys/pipe.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/signal_inbox.h"
#include "sys/variables.h"

namespace overcap {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr size_t kMostCaptured = 64 << 20;
constexpr size_t kBlock = 64 << 10;
constexpr int kTickMs = 100;
constexpr std::chrono::seconds kTimeToEnd{10};   // between TERM or HUP and KILL
constexpr std::chrono::seconds kTimeToEmpty{2};  // for what a child that has ended left in its pipes
constexpr pid_t kFirstProcess = 1;

void SetNonBlocking(const Fd& fd) {
  (void)fcntl(fd.Get(), F_SETFL, fcntl(fd.Get(), F_GETFL) | O_NONBLOCK);
}

// This process' terminal hands on every key as it is typed while this lives.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted) : set_(wanted && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!set_) return;
    termios raw = before_;
    cfmakeraw(&raw);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() {
    if (set_) (void)tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

 private:
  termios before_{};
  bool set_;
};

// As programs do whose output is read no more: without a word.
void EndLikeOthers() {
  (void)signal(SIGPIPE, SIG_DFL);
  (void)raise(SIGPIPE);
}

// A process in the background of a shell is stopped when it reads from the terminal.
bool MayRead() {
  const pid_t front = tcgetpgrp(STDIN_FILENO);  // -1: not this session's terminal, or none
  return front < 0 || front == getpgrp();
}

// One direction of what is copied. `to` -1: kept in `kept`.
struct Stream {
  Fd from;
  int to = -1;
  bool clean = false;
  PlainLines lines = {};
  std::string kept = {};
};

class Relay {
 public:
  Relay(const OwnersRun& run, SignalInbox inbox) : run_(run), inbox_(std::move(inbox)) {}

  Result<OwnersRunEnd> Run(uid_t uid, gid_t gid, const std::vector<std::string>& environment);

 private:
  Result<void> MakeTerminal(uid_t uid, gid_t gid, SpawnRequest* request);
  Result<void> MakePipes(SpawnRequest* request);
  void CopySize() const;
  void HeedSignals();
  void ReadInput();
  void WriteInput();
  bool Copy(Stream* stream);  // whether there was something
  void Put(Stream* stream, std::string_view bytes);
  void Finish(Stream* stream);
  void End(int signal);
  Result<OwnersRunEnd> Loop();

  const OwnersRun& run_;
  SignalInbox inbox_;
  Spawned child_;
  std::vector<Fd> childs_;  // the child's ends, until it has them
  Stream out_, err_;
  Fd in_;  // to the child
  std::string unsent_;
  bool input_open_ = false;
  bool input_ended_ = false;
  std::optional<steady_clock::time_point> kill_at_, leave_at_;
  std::optional<Error> failed_;
};

// Its owner may open it by its name, as programs do.
Result<void> Relay::MakeTerminal(uid_t uid, gid_t gid, SpawnRequest* request) {
  Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || grantpt(master.Get()) != 0 || unlockpt(master.Get()) != 0)
    return Fail(ErrnoError(errno, "cannot make a terminal"));
  Fd slave(ioctl(master.Get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave || fchown(slave.Get(), uid, gid) != 0 || fchmod(slave.Get(), 0600) != 0)
    return Fail(ErrnoError(errno, "cannot make a terminal"));
  request->stdin_fd = request->stdout_fd = request->stderr_fd = slave.Get();
  childs_.push_back(std::move(slave));
  in_ = Fd(fcntl(master.Get(), F_DUPFD_CLOEXEC, 3));
  SetNonBlocking(master);
  out_.from = std::move(master);
  CopySize();
  return {};
}

Result<void> Relay::MakePipes(SpawnRequest* request) {
  OC_TRY(out, MakePipe());
  OC_TRY(err, MakePipe());
  request->stdout_fd = out.write.Get(), request->stderr_fd = err.write.Get();
  out_.from = std::move(out.read), err_.from = std::move(err.read);
  childs_.push_back(std::move(out.write)), childs_.push_back(std::move(err.write));
  if (run_.input) {
    OC_TRY(in, MakePipe());
    request->stdin_fd = in.read.Get();
    in_ = std::move(in.write);
    childs_.push_back(std::move(in.read));
    SetNonBlocking(in_);
  }
  SetNonBlocking(out_.from), SetNonBlocking(err_.from);
  return {};
}

void Relay::CopySize() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) (void)ioctl(out_.from.Get(), TIOCSWINSZ, &size);
}

void Relay::End(int signal) {
  (void)kill(-child_.pid, signal);  // it leads a session, so all there are of it
  (void)kill(child_.pid, signal);
}

void Relay::HeedSignals() {
  for (const int signal : inbox_.Take()) {
    if (signal == SIGWINCH) {
      if (run_.terminal) CopySize();
      continue;
    }
    End(signal);
    if ((signal == SIGTERM || signal == SIGHUP) && !kill_at_) kill_at_ = steady_clock::now() + kTimeToEnd;
  }
}

void Relay::ReadInput() {
  char bytes[kBlock];
  const ssize_t size = read(STDIN_FILENO, bytes, sizeof bytes);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size > 0) unsent_.append(bytes, static_cast<size_t>(size));
  input_ended_ = size <= 0;
  WriteInput();
}

void Relay::WriteInput() {
  while (!unsent_.empty()) {
    const ssize_t size = write(in_.Get(), unsent_.data(), unsent_.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) {  // it reads no more
      unsent_.clear();
      input_ended_ = true;
      break;
    }
    unsent_.erase(0, static_cast<size_t>(size));
  }
  if (!input_ended_) return;
  input_open_ = false;
  if (!run_.terminal) in_.Reset();
}

void Relay::Put(Stream* stream, std::string_view bytes) {
  if (bytes.empty() || failed_) return;
  if (stream->to < 0) {
    if (stream->kept.size() + bytes.size() <= kMostCaptured) {
      stream->kept += bytes;
      return;
    }
    failed_ = Error{ErrorCode::kUnavailable, "there is more than 64 MiB to be read", ""};
  } else if (const int error = WriteAll(stream->to, bytes); error != 0) {
    if (error == EPIPE) EndLikeOthers();
    failed_ = ErrnoError(error, "cannot write the output");
  }
  if (failed_) End(SIGKILL);
}

bool Relay::Copy(Stream* stream) {
  if (!stream->from) return false;
  char bytes[kBlock];
  const ssize_t size = read(stream->from.Get(), bytes, sizeof bytes);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {  // a terminal whose other end is closed says EIO
    Finish(stream);
    return false;
  }
  const std::string_view read_bytes(bytes, static_cast<size_t>(size));
  if (stream->clean) {
    Put(stream, stream->lines.Take(read_bytes));
  } else {
    Put(stream, read_bytes);
  }
  return true;
}

void Relay::Finish(Stream* stream) {
  if (!stream->from) return;
  stream->from.Reset();
  if (stream->clean) Put(stream, stream->lines.Finish());
}

Result<OwnersRunEnd> Relay::Loop() {
  bool ended = false;
  int status = 0;
  while (true) {
    pollfd waits[] = {{inbox_.PollFd(), POLLIN, 0},
                      {ended ? -1 : child_.pidfd.Get(), POLLIN, 0},
                      {out_.from ? out_.from.Get() : -1, POLLIN, 0},
                      {err_.from ? err_.from.Get() : -1, POLLIN, 0},
                      {input_open_ && unsent_.empty() && MayRead() ? STDIN_FILENO : -1, POLLIN, 0},
                      {in_ && !unsent_.empty() ? in_.Get() : -1, POLLOUT, 0}};
    const int ready = poll(waits, std::size(waits), kTickMs);
    HeedSignals();
    if (waits[4].revents != 0) ReadInput();
    if (waits[5].revents != 0) WriteInput();
    bool copied = waits[2].revents != 0 && Copy(&out_);
    copied = (waits[3].revents != 0 && Copy(&err_)) || copied;
    const auto now = steady_clock::now();
    if (!ended && kill_at_ && now >= *kill_at_) End(SIGKILL);
    if (!ended) ended = waitpid(child_.pid, &status, WNOHANG) == child_.pid;
    if (!ended) continue;
    // Processes that it has left behind may hold the pipes and write into them without end.
    if (!leave_at_) leave_at_ = now + kTimeToEmpty;
    if (!copied && (ready == 0 || (!out_.from && !err_.from))) break;
    if (now >= *leave_at_) break;
  }
  Finish(&out_);
  Finish(&err_);
  if (failed_) return Fail(*failed_);
  return OwnersRunEnd{ProcessEndOf(status).exit_status, std::move(out_.kept)};
}

Result<OwnersRunEnd> Relay::Run(uid_t uid, gid_t gid, const std::vector<std::string>& environment) {
  SpawnRequest request;
  request.program = OwnProgram();
  request.argv = {"overcap", "as-owner", "--uid", std::to_string(uid)};
  if (run_.terminal) request.argv.emplace_back("--terminal");
  request.argv.emplace_back("--");
  request.argv.insert(request.argv.end(), run_.words.begin(), run_.words.end());
  request.env = environment;
  request.cwd = "/";
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  request.parent_death_signal = SIGHUP;
  OC_TRY_VOID(run_.terminal ? MakeTerminal(uid, gid, &request) : MakePipes(&request));
  out_.to = run_.capture ? -1 : STDOUT_FILENO, err_.to = STDERR_FILENO;
  out_.clean = run_.clean && !run_.capture && isatty(STDOUT_FILENO) == 1;
  err_.clean = run_.clean && isatty(STDERR_FILENO) == 1;
  input_open_ = run_.terminal || run_.input;
  const RawTerminal raw(run_.terminal);
  OC_TRY(spawned, Spawn(request));
  child_ = std::move(spawned);
  childs_.clear();
  return Loop();
}

// The limits of the machine's first process where they are tighter than those of this one: what root's shell
// was given is not the user's.
std::vector<NamedLimit> TighterLimits() {
  const auto own = LimitsOfProcess(getpid(), 0), first = LimitsOfProcess(kFirstProcess, 0);
  const auto less = [](int64_t a, int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); };
  std::vector<NamedLimit> limits;
  for (NamedLimit limit : own ? *own : std::vector<NamedLimit>()) {
    for (const NamedLimit& other : first ? *first : std::vector<NamedLimit>()) {
      if (other.name != limit.name) continue;
      limit.hard = less(limit.hard, other.hard);
      limit.soft = less(less(limit.soft, other.soft), limit.hard);
    }
    limits.push_back(std::move(limit));
  }
  return limits;
}

Result<std::pair<uid_t, std::vector<std::string>>> ParseStep(const std::vector<std::string>& words,
                                                             bool* terminal) {
  std::optional<int64_t> uid;
  size_t i = 1;
  for (; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "--terminal") {
      *terminal = true;
    } else if (words[i] == "--uid" && i + 1 < words.size()) {
      uid = ParseInt(words[++i]).value_or(-1);
    } else {
      return Fail(ErrorCode::kUsage, StrCat("as-owner: unknown argument ", Quoted(words[i])));
    }
  }
  if (!uid || *uid <= 0 || *uid >= UINT32_MAX || i + 1 >= words.size())
    return Fail(ErrorCode::kUsage, "as-owner takes --uid and '--' before its words");
  return std::pair(static_cast<uid_t>(*uid),
                   std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end()));
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<std::string> OwnersVariables(const std::string& name, const std::string& home,
                                         const std::string& shell) {
  return {
      StrCat("HOME=", home.starts_with('/') ? home : "/"),
      StrCat("USER=", name),
      StrCat("LOGNAME=", name),
      StrCat("SHELL=", shell.starts_with('/') ? shell : "/bin/sh"),
      StrCat("PATH=", kPath),
      // Where the engine listens is known: no configuration of the user's is needed for that.
      "OVERCAP_CONFIG=/dev/null",
      "XDG_CONFIG_HOME=/dev/null",
  };
}

Result<OwnersRunEnd> RunAsOwner(const OwnersRun& run) {
  const auto uid = UserNumber(run.user);
  const auto user = uid ? FindUser(*uid) : std::nullopt;
  if (!user || *uid == 0) {
    return Fail(ErrorCode::kDenied, StrCat("the machine's user list has no user ", Quoted(run.user),
                                           ", in whose name alone the files of the job are opened"));
  }
  std::vector<std::string> environment = OwnersVariables(user->name, user->home, user->shell);
  environment.insert(environment.end(), run.variables.begin(), run.variables.end());
  const std::string terminal(run.terminal ? Variables::OfThisProcess().Get("TERM") : "");
  if (!terminal.empty()) environment.push_back("TERM=" + terminal);
  OC_TRY(inbox, SignalInbox::Make({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH}));
  (void)signal(SIGPIPE, SIG_IGN);  // of input that the child does not read
  return Relay(run, std::move(inbox)).Run(*uid, user->gid, environment);
}

// From here to the exec nothing is opened that the user could have made.
Result<int> RunAsOwnerStep(const std::vector<std::string>& words) {
  bool terminal = false;
  OC_TRY(step, ParseStep(words, &terminal));
  const uid_t uid = step.first;
  if (geteuid() != 0) return Fail(ErrorCode::kDenied, "as-owner: only root can become another user");
  const auto user = FindUser(uid);
  if (!user) return Fail(ErrorCode::kDenied, StrCat("the machine's user list has no user ", uid));
  if (terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0)
    return Fail(ErrnoError(errno, "cannot take the terminal"));
  std::vector<std::string> argv = {"overcap"};
  argv.insert(argv.end(), step.second.begin(), step.second.end());
  std::vector<std::string> environment = Variables::OfThisProcess().entries();
  const std::vector<NamedLimit> limits = TighterLimits();
  LeaveRootBehind();
  // The user need not be able to walk to this program.
  const Fd program(open("/proc/self/exe", O_PATH | O_CLOEXEC));
  if (auto failed = SetUsersGroups(user, {})) return Fail(*failed);
  OC_TRY_VOID(SetOwnLimits(limits));
  if (auto failed = SetUser(uid, user->gid)) return Fail(*failed);
  umask(077);
  (void)prctl(PR_SET_PDEATHSIG, SIGHUP);  // the change of users has cleared it
  (void)syscall(SYS_execveat, program.Get(), "", Pointers(argv).data(), Pointers(environment).data(),
                AT_EMPTY_PATH);
  return Fail(ErrnoError(errno, StrCat("cannot run this program as user '", user->name, "'")));
}

}  // namespace overcap
