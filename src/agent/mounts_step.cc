// SPDX-License-Identifier: Apache-2.0
#include "agent/mounts_step.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/key_variables.h"
#include "sys/own_program.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr int64_t kSilentUs = 600'000'000;  // a keeper that says nothing for so long is lost
constexpr int64_t kStopUs = 60'000'000;     // to give up when the job is cancelled meanwhile
constexpr int kLookMs = 100;
constexpr size_t kMostHeard = 1 << 20;

struct Ends {
  Fd read, write;
};

Result<Ends> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  return Ends{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<void> MountsStep::Prepare(const std::string& code, const std::vector<std::string>& env) {
  if (spec_.mounts.empty()) return {};
  if (spec_.snapshot.empty())
    return Fail(ErrorCode::kUsage, "mounts need the job's own copy of its code, and it has none");
  OC_TRY_VOID(Start(code, env));
  const Word word = Hear(true);
  if (word == Word::kReady) return {};
  input_.Reset();
  const bool cancelled = supervisor_.CancelRequested();
  if (cancelled) (void)Hear(false);  // it takes away what it has mounted
  output_.Reset();
  if (cancelled) return Fail(ErrorCode::kConflict, "cancelled while stores were mounted");
  if (word == Word::kFailed) return Fail(ErrorCode::kUnavailable, failure_);
  return Fail(ErrorCode::kUnavailable, StrCat("the process that mounts stores has ended early; see '",
                                              attempt_.Path(), "/mounts.log'"));
}

Result<void> MountsStep::Start(const std::string& code, const std::vector<std::string>& env) {
  OC_TRY(input, MakePipe());
  OC_TRY(output, MakePipe());
  const std::string log_path = attempt_.Path() + "/mounts.log";
  const Fd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return Fail(ErrnoError(errno, StrCat("cannot open '", log_path, "'")));
  (void)fcntl(output.read.Get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  // Named as an agent: whoever ends what ranks have left behind leaves it and all that it started alone.
  request.argv = {OwnProgram(),
                  "agent",
                  "mounts",
                  "--job",
                  options_.job_dir,
                  "--attempt",
                  std::to_string(options_.attempt),
                  "--slot",
                  std::to_string(options_.slot),
                  "--folder",
                  code};
  // The environment of a job that goes through a store has no keys: each machine has its own.
  request.env = spec_.store.empty() ? env : WithStoreKeysOf(Variables::OfThisProcess(), env);
  request.cwd = "/";
  request.stdin_fd = input.read.Get();
  request.stdout_fd = output.write.Get();
  request.stderr_fd = log.Get();
  request.group = ProcessGroup::kSession;
  request.want_pidfd = true;
  OC_TRY(spawned, Spawn(request));
  pidfd_ = std::move(spawned.pidfd);
  input_ = std::move(input.write);
  output_ = std::move(output.read);
  return {};
}

// False at the end.
bool MountsStep::ReadMore() {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(output_.Get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return true;
    if (size <= 0 || heard_.size() > kMostHeard) return false;
    heard_.append(buffer, static_cast<size_t>(size));
  }
}

MountsStep::Word MountsStep::Take(const std::string& line) {
  const size_t blank = line.find(' ');
  const std::string word = line.substr(0, blank);
  const std::string text = blank == std::string::npos ? "" : line.substr(blank + 1);
  if (word == "note") notes_.push_back(text);
  if (word == "unsaved") unsaved_ += StrCat(unsaved_.empty() ? "" : "; ", text);
  if (word == "failed") failure_ = text;
  if (word == "failed") return Word::kFailed;
  if (word == "ready") return Word::kReady;
  return word == "released" ? Word::kReleased : Word::kNone;
}

MountsStep::Word MountsStep::Hear(bool until_cancelled) {
  int64_t deadline_us =
      clock_.MonotonicUs() + (until_cancelled || !supervisor_.CancelRequested() ? kSilentUs : kStopUs);
  while (clock_.MonotonicUs() < deadline_us) {
    if (until_cancelled && supervisor_.CancelRequested()) return Word::kNone;
    pollfd fds[] = {{output_.Get(), POLLIN, 0}};
    (void)poll(fds, 1, kLookMs);
    const size_t before = heard_.size();
    const bool more = ReadMore();
    if (heard_.size() > before) deadline_us = clock_.MonotonicUs() + kSilentUs;
    for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
      const Word word = Take(heard_.substr(0, end));
      heard_.erase(0, end + 1);
      if (word != Word::kNone) return word;
    }
    if (!more) return Word::kGone;
  }
  if (pidfd_) (void)syscall(SYS_pidfd_send_signal, pidfd_.Get(), SIGKILL, nullptr, 0);
  return Word::kGone;
}

std::string MountsStep::Release() {
  if (!output_) return "";
  input_.Reset();
  const Word word = Hear(false);
  output_.Reset();
  if (word != Word::kReleased && unsaved_.empty())
    return "the process that holds the job's mounts has ended early; 'overcap gc' on that node clears what "
           "it left";
  return unsaved_;
}

}  // namespace overcap
