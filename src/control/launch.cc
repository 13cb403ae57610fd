// SPDX-License-Identifier: Apache-2.0
#include "control/launch.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/config.h"
#include "control/launch_folder.h"
#include "control/launch_runner.h"
#include "control/prepare_launch.h"
#include "launch/failure_text.h"
#include "launch/rank_error.h"
#include "launch/retry.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kLastLines = 20;
constexpr int kWordsWaitMs = 1000;

// A host that does not answer, a launcher that will not have it: no rank was started, so there is nothing to
// keep.
bool Refused(const AttemptEnd& end) {
  using Cause = AttemptEnd::Cause;
  return (end.cause == Cause::kHostFailed || end.cause == Cause::kCannotRun) && end.code == ErrorCode::kUsage;
}

// While no rank runs, TERM and its like end this process as they end any other, even when nobody reads what
// it has to say.
class OpenToSignals {
 public:
  OpenToSignals() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int sig : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ending, sig);
    sigprocmask(SIG_UNBLOCK, &ending, &before_);
  }
  ~OpenToSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  OpenToSignals(const OpenToSignals&) = delete;

 private:
  sigset_t before_;
};

bool TakesWords(int fd, int wait_ms) {
  pollfd one{fd, POLLOUT, 0};
  return poll(&one, 1, wait_ms) > 0;
}

// One launch from its first attempt to its last.
class LaunchRun {
 public:
  LaunchRun(const LaunchOptions& options, PreparedLaunch prepared, const LaunchWorld& world,
            LaunchVoice* voice)
      : options_(options),
        prepared_(std::move(prepared)),
        world_(world),
        voice_(*voice),
        id_(MakeLaunchId(world.clock.WallUs(), static_cast<uint32_t>(world.random.Next()))) {}

  Result<int> Run() {
    OC_TRY(runner, MakeRunner(prepared_.launcher, options_, world_));
    runner_ = std::move(runner);
    OC_TRY(folder, LaunchFolder::Make(world_.root, options_.logs, id_, options_.logs_below));
    folder_ = std::move(folder);
    const Result<void> begun = folder_.KeepFacts(FactsOf());
    if (!begun) {
      folder_.Remove();
      return Fail(begun.error());
    }
    voice_.Note(StrCat("logs in ", folder_.path()));
    while (true) {
      if (auto ran = RunAttempt(); !ran) {
        if (records_.empty()) folder_.Remove();
        return Fail(std::move(ran).error());
      }
      Result<bool> again = Again();
      if (!again) voice_.Warn(again.error().message);
      if (!again || !*again) break;
    }
    const int status = cancelled_by_ != 0 ? 128 + cancelled_by_ : ExitStatusOf(records_.back().end);
    if (records_.size() == 1 && Refused(records_.front().end)) {
      folder_.Remove();
      return status;
    }
    if (const auto kept = folder_.KeepResult(status, records_); !kept) voice_.Warn(kept.error().message);
    return status;
  }

 private:
  LaunchFacts FactsOf() const {
    LaunchFacts facts;
    facts.id = id_;
    facts.command = options_.command;
    facts.folder = world_.folder;
    facts.launcher = prepared_.launcher;
    facts.launch_command = prepared_.command.argv;
    facts.plan = prepared_.plan;
    facts.allocation = prepared_.allocation;
    facts.started_us = world_.clock.WallUs();
    return facts;
  }

  Result<Attempt> MakeAttempt(int number) const {
    OC_TRY(folder, folder_.MakeAttempt(number));
    Attempt attempt;
    attempt.plan = prepared_.plan;
    attempt.command = options_.command;
    attempt.env = prepared_.env;
    attempt.folder = world_.folder;
    attempt.log_folder = folder;
    attempt.binary = world_.binary;
    attempt.master_port = options_.master_port;
    attempt.run = {.id = OwnRunId(id_),
                   .errors = folder,
                   .restarts = number - 1,
                   .max_restarts = options_.retries,
                   .nodes = static_cast<int>(prepared_.plan.hosts.size())};
    attempt.grace_us = options_.grace_us;
    attempt.idle_us = options_.idle_us;
    attempt.pipes = options_.pipes;
    OC_TRY(composed, ComposeFor(prepared_, options_, world_, folder + "/hostfile", true));
    attempt.launch = std::move(composed);
    if (!attempt.launch.hostfile_text.empty()) {
      OC_TRY_VOID(PosixFiles().WriteAtomic(folder + "/hostfile", attempt.launch.hostfile_text, false));
    }
    OC_TRY_VOID(FillOwnSpawner(prepared_, world_, &attempt));
    return attempt;
  }

  Result<void> RunAttempt() {
    const int number = static_cast<int>(records_.size()) + 1;
    OC_TRY(attempt, MakeAttempt(number));
    OC_TRY(logs, RankLogs::Make(attempt.log_folder, attempt.plan.world_size, options_.tee));
    logs.Bound(LogsMax(world_.config, world_.variables));
    AttemptRecord record;
    record.attempt = number;
    record.started_us = world_.clock.WallUs();
    record.end = runner_->Run(attempt, &logs);
    record.ended_us = world_.clock.WallUs();
    TakeError(attempt, &record.end);
    record.line = EndLine(record.end, options_.idle_us);
    const int signal_before = runner_->CancelSignal();
    // A reader that does not read is waited for, until somebody says stop.
    logs.ShowRest([&] { return signal_before == 0 ? runner_->CancelSignal() != 0 : true; });
    // Who has said stop does not wait for somebody to read why.
    if (runner_->CancelSignal() == 0 || TakesWords(STDERR_FILENO, kWordsWaitMs)) {
      std::optional<OpenToSignals> open;
      if (!TakesWords(STDERR_FILENO, 0)) open.emplace();
      Tell(record, logs, attempt.log_folder);
    }
    records_.push_back(std::move(record));
    return {};
  }

  // What the rank that failed first told of it, for us and for the user's own program.
  void TakeError(const Attempt& attempt, AttemptEnd* end) {
    if (end->cause != AttemptEnd::Cause::kRankFailed || !end->first || end->first->rank < 0) return;
    const std::string file = ErrorFileOf(attempt.log_folder, end->first->rank);
    end->first->message = ReadErrorFile(file).message;
    const auto handed =
        HandErrorOn(file, ExitStatusOf(*end), world_.variables.Get("TORCHELASTIC_ERROR_FILE"));
    if (!handed) voice_.Warn(handed.error().message);
  }

  bool IsShown(int rank) const {
    return ShowsAllRanks(options_.tee) || (options_.tee == Tee::kRank0 && rank == 0);
  }

  std::string HintOf(const AttemptEnd& end, const std::string& log_folder) const {
    using Cause = AttemptEnd::Cause;
    const bool itself = StartsItself(prepared_.launcher.flavour);
    if (itself && end.cause == Cause::kHostFailed && Refused(end) && !end.bad_hosts.empty())
      return StrCat("does 'ssh ", end.bad_hosts[0], " true' work without a password?");
    if (!itself && end.cause == Cause::kCannotRun && !Refused(end))
      return StrCat("all that it said: ", log_folder, "/launcher.log");
    return "";
  }

  void Tell(const AttemptRecord& record, const RankLogs& logs, const std::string& log_folder) {
    for (const std::string& note : record.end.notes) voice_.Warn(note);
    if (!logs.Problem().empty()) voice_.Warn(logs.Problem());
    if (record.line.empty()) return;
    using Cause = AttemptEnd::Cause;
    LaunchFailure failure{CauseName(record.end.cause),    record.attempt, record.line, "", "", "",
                          HintOf(record.end, log_folder), false};
    if (record.end.first && record.end.first->rank >= 0) {
      failure.last_lines = logs.LastLines(record.end.first->rank, kLastLines);
      failure.shown = IsShown(record.end.first->rank);
    }
    if (record.end.cause == Cause::kIdle) failure.stacks = log_folder + "/stacks.txt";
    if (record.end.cause != Cause::kCancelled && !Refused(record.end)) failure.logs = log_folder;
    voice_.Failure(failure);
  }

  // Whether there is another attempt; waits for its time and plans it.
  Result<bool> Again() {
    const AttemptEnd& end = records_.back().end;
    const int retry = static_cast<int>(records_.size());
    if (retry > options_.retries || !WorthRetrying(end)) return false;
    cancelled_by_ = runner_->CancelSignal();  // that arrived while the ranks failed
    if (cancelled_by_ != 0) return false;
    if (!end.bad_hosts.empty()) {
      bad_hosts_.insert(bad_hosts_.end(), end.bad_hosts.begin(), end.bad_hosts.end());
      OC_TRY(plan, PlanAgain(prepared_.allocation.hosts, options_.plan, bad_hosts_));
      prepared_.plan = std::move(plan);
      prepared_.hosts_chosen = true;
    }
    voice_.Say(StrCat("trying again in ", FormatElapsed(BackOffUs(retry)), " (retry ", retry, " of ",
                      options_.retries, ", ", CountOf(prepared_.plan.world_size, "rank"), " on ",
                      CountOf(static_cast<int64_t>(prepared_.plan.hosts.size()), "host"), ")"));
    if (runner_->Pause(BackOffUs(retry))) return true;
    cancelled_by_ = runner_->CancelSignal();
    return false;
  }

  const LaunchOptions& options_;
  PreparedLaunch prepared_;
  const LaunchWorld& world_;
  LaunchVoice& voice_;
  const std::string id_;
  std::unique_ptr<Runner> runner_;
  LaunchFolder folder_;
  std::vector<AttemptRecord> records_;
  std::vector<std::string> bad_hosts_;
  int cancelled_by_ = 0;  // not by an attempt's own end
};

}  // namespace

int64_t LogsMax(const Config& config, const Variables& variables) {
  const auto of_job = ParseInt(variables.Get("OVERCAP_LOGS_MAX"));
  return of_job && *of_job >= 0 ? *of_job : config.logs.max_bytes;
}

Result<int> RunLaunch(const LaunchOptions& options, PreparedLaunch prepared, const LaunchWorld& world,
                      LaunchVoice* voice) {
  return LaunchRun(options, std::move(prepared), world, voice).Run();
}

}  // namespace overcap
