// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_service.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/signal_inbox.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kBeatUs = 60 * kSecond;

// A backup that goes on in a thread of its own.
class Running {
 public:
  Running(const AutoServiceParts& parts, int done_fd)
      : thread_([this, &parts, done_fd] {
          result_.emplace(parts.save(stop_));
          const uint64_t one = 1;
          (void)!write(done_fd, &one, sizeof one);
        }) {}
  ~Running() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void Stop() { stop_ = true; }
  Result<AutoSaved> Wait() {
    thread_.join();
    return std::move(*result_);
  }

 private:
  std::atomic<bool> stop_ = false;
  std::optional<Result<AutoSaved>> result_;
  std::thread thread_;
};

class Service {
 public:
  Service(AutoServiceParts parts, SignalInbox inbox)
      : parts_(std::move(parts)), inbox_(std::move(inbox)), done_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<void> Lock() {
    lock_ = Fd(open(parts_.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_) return Fail(ErrnoError(errno, StrCat("cannot open '", parts_.lock_file, "'")));
    if (flock(lock_.Get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK)
        return Fail(ErrnoError(errno, StrCat("cannot lock '", parts_.lock_file, "'")));
      return Fail(ErrorCode::kConflict,
                  StrCat("workspace '", parts_.state.workspace, "' is saved by itself already"),
                  "'overcap workspace auto --status' tells more, '--stop' ends it");
    }
    if (ftruncate(lock_.Get(), 0) != 0 || WriteAll(lock_.Get(), StrCat(getpid(), "\n")) != 0) {
      return Fail(ErrnoError(errno, StrCat("cannot write '", parts_.lock_file, "'")));
    }
    return {};
  }

  // From now on others can see it.
  void Start() {
    AutoState& state = parts_.state;
    state.pid = getpid();
    state.started_us = parts_.clock->WallUs();
    state.doing = "waits";
    Write(true);
    Tell(StrCat("begins: ", state.rules, ", pid ", state.pid,
                state.job.empty() ? "" : StrCat(", in job '", state.job, "'")));
  }

  bool Run() {
    while (true) {
      const AutoDecision decision = DecideAuto(parts_.rules, Facts());
      if (decision.act == AutoAct::kEnd) return End(!decision.unsaved);
      if (Replaced()) return End(false, "another one has taken its place");
      if (decision.act == AutoAct::kBackUp && !running_) Begin(decision);
      Note(decision);
      Wait(decision);
    }
  }

 private:
  int64_t Now() const { return parts_.clock->MonotonicUs(); }
  int64_t WallOf(int64_t monotonic) const { return parts_.clock->WallUs() + monotonic - Now(); }
  void Tell(std::string_view line, bool important = false) const { parts_.tell(line, important); }

  AutoFacts Facts() {
    facts_.now = Now();
    if (parts_.allocation_end != nullptr) parts_.state.job_end_us = parts_.allocation_end->end_us();
    if (parts_.state.job_end_us != 0)
      facts_.end = facts_.now + parts_.state.job_end_us - parts_.clock->WallUs();
    return facts_;
  }

  // The lock file is another one: the folder was made anew and somebody else looks after it.
  bool Replaced() const {
    struct stat own {
    }, there{};
    if (fstat(lock_.Get(), &own) != 0 || stat(parts_.lock_file.c_str(), &there) != 0) return false;
    return own.st_ino != there.st_ino || own.st_dev != there.st_dev;
  }

  void Begin(const AutoDecision& decision) {
    began_ = Now();
    reason_ = decision.reason;
    running_ = std::make_unique<Running>(parts_, done_.Get());
  }

  void Ended() {
    uint64_t count = 0;
    (void)!read(done_.Get(), &count, sizeof count);
    const auto saved = running_->Wait();
    running_.reset();
    facts_.tried = Now();
    if (saved) {
      Succeeded(*saved);
    } else {
      Failed(saved.error());
    }
  }

  void Succeeded(const AutoSaved& saved) {
    AutoState& state = parts_.state;
    if (facts_.failures > 0) Tell("the store is reached again", true);
    facts_.failures = 0;
    facts_.took = Now() - began_;
    facts_.saved = began_;
    state.failures = 0;
    state.error.clear();
    state.saved_us = WallOf(began_);
    state.snapshot = saved.snapshot;
    state.unread = saved.unread;
    const std::string took = FormatElapsed(facts_.took);
    if (saved.is_new) {
      Tell(StrCat("saved as ", saved.snapshot.substr(0, 10), ", ", FormatBytes(saved.new_bytes), " new, in ",
                  took, " (", AutoReasonText(reason_), ")",
                  saved.unread > 0 ? StrCat("; ", CountOf(saved.unread, "file"), " could not be read") : ""),
           saved.unread > 0);
    } else {
      Tell(StrCat("nothing has changed (", AutoReasonText(reason_), "), looked for ", took));
    }
  }

  void Failed(const Error& error) {
    AutoState& state = parts_.state;
    ++facts_.failures;
    state.failures = facts_.failures;
    state.failed_us = parts_.clock->WallUs();
    const bool other = state.error != error.message;
    state.error = error.message;
    // The same again and again is told by the state only.
    if (!other) return;
    const std::string age = state.saved_us == 0
                                ? "there is no backup yet"
                                : StrCat("the last backup is of ", FormatTimeLocal(state.saved_us));
    Tell(StrCat("cannot save: ", error.message, "; tries again; ", age), true);
  }

  void TakeSignals() {
    for (const int signal : inbox_.Take()) {
      if (signal == SIGHUP) continue;
      if (signal == SIGUSR1) {
        facts_.asked = Now();
        continue;
      }
      if (!facts_.stopped) {
        facts_.stopped = Now();
        Tell("told to end: saves once more");
      } else if (Now() - *facts_.stopped > kSameWordUs && running_) {
        running_->Stop();
      }
    }
  }

  // What the state says; written when it has changed, and now and then.
  void Note(const AutoDecision& decision) {
    AutoState& state = parts_.state;
    state.doing = running_ ? "saves" : facts_.failures > 0 ? "paused" : "waits";
    const bool waits = !running_ && decision.act == AutoAct::kWait;
    state.next_us = waits ? WallOf(decision.at) / kSecond * kSecond : 0;
    state.next_why = std::string(waits ? AutoReasonText(decision.reason) : "");
    Write(false);
  }

  void Write(bool must) {
    AutoState now = parts_.state;
    now.beat_us = written_.beat_us;
    const bool old = Now() - written_at_ >= kBeatUs;
    const auto without_next = [](AutoState state) {
      state.next_us = 0;
      return state;
    };
    // The next time moves by a second with each change of the clock; that alone is not worth a write.
    if (!must && !old && without_next(now) == without_next(written_) &&
        std::abs(now.next_us - written_.next_us) <= 2 * kSecond)
      return;
    now.beat_us = parts_.clock->WallUs();
    written_ = now;
    written_at_ = Now();
    // Where it cannot be written it is tried again with the next change.
    if (!parts_.state_file.empty())
      (void)PosixFiles().WriteAtomic(parts_.state_file, AutoStateToJson(now), false);
  }

  // Until something happens, the decision is due, or the state must be written.
  void Wait(const AutoDecision& decision) {
    const int64_t now = Now();
    int64_t until = now + kBeatUs;
    if (!running_ && decision.act == AutoAct::kWait) until = std::min(until, decision.at);
    pollfd waits[] = {{inbox_.PollFd(), POLLIN, 0},
                      {done_.Get(), POLLIN, 0},
                      {parts_.allocation_end != nullptr ? parts_.allocation_end->PollFd() : -1, POLLIN, 0}};
    const int64_t ms = std::clamp<int64_t>((until - now + 999) / 1000, 0, 60'000);
    if (poll(waits, 3, static_cast<int>(ms)) < 0) return;
    if (waits[2].revents != 0) parts_.allocation_end->Taken();
    if (waits[1].revents != 0) Ended();
    if (waits[0].revents != 0) TakeSignals();
  }

  bool End(bool saved, std::string_view why = "told to end") {
    AutoState& state = parts_.state;
    state.doing = "ended";
    state.next_us = 0;
    state.next_why.clear();
    state.ended_why = std::string(why);
    Write(true);
    if (saved) {
      Tell(StrCat("ends: all is saved in ", state.snapshot.substr(0, 10)), !state.job.empty());
    } else {
      const std::string last = state.saved_us == 0
                                   ? "there is no backup"
                                   : StrCat("the last backup, of ", FormatTimeLocal(state.saved_us),
                                            ", may be older than the work");
      Tell(StrCat("ends (", why, "): ", last), true);
    }
    return saved;
  }

  AutoServiceParts parts_;
  SignalInbox inbox_;
  Fd done_, lock_;
  AutoFacts facts_;
  std::unique_ptr<Running> running_;
  int64_t began_ = 0, written_at_ = 0;
  AutoReason reason_ = AutoReason::kFirst;
  AutoState written_;
};

}  // namespace

Result<bool> RunAutoService(AutoServiceParts parts, const std::function<void()>& ready) {
  OC_TRY(inbox, SignalInbox::Make({SIGTERM, SIGINT, SIGHUP, SIGUSR1}));
  Service service(std::move(parts), std::move(inbox));
  OC_TRY_VOID(service.Lock());
  service.Start();
  ready();
  return service.Run();
}

AutoAllocation AllocationHere(const Variables& variables) {
  AutoAllocation allocation;
  allocation.job = std::string(variables.Get("OVERCAP_JOB_ID"));
  if (allocation.job.empty()) allocation.job = std::string(variables.Get("SLURM_JOB_ID"));
  const auto end = ParseInt(variables.Get("SLURM_JOB_END_TIME"));
  const bool sane = end && *end > 0 && *end < 100'000'000'000;
  if (!variables.Get("SLURM_JOB_ID").empty() && sane) allocation.end_us = *end * kSecond;
  return allocation;
}

}  // namespace overcap
