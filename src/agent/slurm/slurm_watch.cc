// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_watch.h"

#include <algorithm>
#include <csignal>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kLookUs = 30 * kSecond;      // between signs of life
constexpr int64_t kFreshUs = 10 * kSecond;     // an older answer is asked for again
constexpr int64_t kAnswerUs = 5 * kSecond;     // for Slurm to answer
constexpr int64_t kOwnSignalUs = 300'000;      // Slurm signals one process after the other
constexpr int64_t kListenUs = 2 * kSecond;     // shorter jobs need no step beside them
constexpr int64_t kFirstAskUs = 10 * kSecond;  // shorter jobs need not know when their time is over
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

SlurmWatch::SlurmWatch(SlurmWatchInputs inputs)
    : in_(std::move(inputs)), begin_us_(in_.clock.WallUs()), ask_at_us_(kNever), listen_at_us_(kNever) {
  if (!in_.listener.argv.empty()) listen_at_us_ = in_.clock.MonotonicUs() + kListenUs;
  if (in_.spec.requeue_on_timeout) ask_at_us_ = in_.clock.MonotonicUs() + kFirstAskUs;
}

void SlurmWatch::Begin(Supervisor* supervisor, bool tells, ReportFile* report, std::string next) {
  supervisor_ = supervisor;
  tells_ = tells;
  report_ = report;
  next_ = std::move(next);
  warnings_ = supervisor->WarningsSeen();
  next_look_us_ = in_.clock.MonotonicUs() + kLookUs;
}

int64_t SlurmWatch::StopUs() const {
  return StopBeforeLimitUs(in_.spec, times_, in_.start.end_us, in_.grace_us);
}

int64_t SlurmWatch::Prepare(std::vector<pollfd>* fds) {
  int64_t next = std::min({next_look_us_, ask_at_us_, listen_at_us_});
  if (listener_) fds->push_back(listener_->PollFd());
  if (question_) {
    fds->push_back(question_->PollFd());
    next = std::min(next, question_->DeadlineUs());
  }
  const int64_t stop_us = StopUs();
  if (stop_us > 0 && !before_limit_)
    next = std::min(next, in_.clock.MonotonicUs() + std::max<int64_t>(0, stop_us - in_.clock.WallUs()));
  return next;
}

bool SlurmWatch::Act(std::span<const pollfd>) {
  if (!tells_) LookAtSignals();
  Hear();
  TakeAnswer();
  const int64_t now = in_.clock.MonotonicUs();
  if (now >= listen_at_us_) Listen();
  if (now >= ask_at_us_ && !question_) {
    ask_at_us_ = kNever;
    if (!times_) Ask();
  }
  if (now >= next_look_us_) LookAtFiles();
  const int64_t stop_us = StopUs();
  if (stop_us > 0 && !told_ && in_.clock.WallUs() >= stop_us && !(facts_ && facts_->preempted))
    before_limit_ = true;
  return cancel_ || before_limit_ || heard_ || replaced_;
}

void SlurmWatch::LookAtSignals() {
  if (!told_ && supervisor_->CancelRequested()) OnSignal(SIGTERM);
  if (supervisor_->WarningsSeen() > warnings_) {
    warnings_ = supervisor_->WarningsSeen();
    OnSignal(SIGUSR1);
  }
}

void SlurmWatch::OnSignal(int signal) {
  const bool first = signal == SIGUSR1 ? !warned_ : !told_;
  (signal == SIGUSR1 ? warned_ : told_) = true;
  if (!first) return;
  facts_.reset();  // what was true before
  question_.reset();
  Ask();
}

std::string SlurmWatch::JobMark() const {
  return StrCat("SLURM_JOB_ID=", in_.start.job_id);
}

void SlurmWatch::LookAtFiles() {
  next_look_us_ = in_.clock.MonotonicUs() + kLookUs;
  if (report_ != nullptr) report_->Touch();
  cancel_ = cancel_ || PosixFiles().Exists(in_.job_dir + "/cancel.json");
  LookForNext();
}

void SlurmWatch::LookForNext() {
  replaced_ = replaced_ || (!next_.empty() && PosixFiles().Exists(next_));
}

void SlurmWatch::Ask() {
  asked_us_ = in_.clock.MonotonicUs();
  auto asked =
      SideTool::Start(SlurmFactsCommand(in_.start.Name()), in_.tools, in_.clock.MonotonicUs() + kAnswerUs);
  if (asked) question_.emplace(*std::move(asked));
}

void SlurmWatch::TakeAnswer() {
  if (!question_ || !question_->Step(in_.clock.MonotonicUs())) return;
  facts_ = ParseSlurmFacts(question_->text());
  if (facts_ && facts_->start_us > 0) times_ = facts_;
  question_.reset();
}

void SlurmWatch::Listen() {
  listen_at_us_ = kNever;
  Variables variables(in_.tools);
  for (const std::string& name : in_.listener.unset) variables.Remove(name);
  auto listener = SideTool::Start(in_.listener.argv, variables.entries(), kNever, true);
  if (listener) listener_.emplace(*std::move(listener));
}

void SlurmWatch::Hear() {
  if (!listener_) return;
  const bool ended = listener_->Step(in_.clock.MonotonicUs());
  if (!heard_ && listener_->text().find("TERM") != std::string::npos) {
    heard_ = true;
    OnSignal(SIGTERM);
  }
  if (ended) listener_.reset();
}

std::optional<std::string> SlurmWatch::ReadCancel() const {
  const auto text = PosixFiles().Read(in_.job_dir + "/cancel.json");
  if (!text) return text.error().code == ErrorCode::kNotFound ? std::nullopt : std::optional<std::string>("");
  const auto object = ParseJsonObject(*text, "cancel.json");
  std::string reason;
  if (object) FieldReader(*object, "cancel.json").Read("reason", &reason);
  return reason;
}

StopEvidence SlurmWatch::Collect(const Ending& ranks) {
  StopEvidence seen;
  LookAtSignals();
  if (!told_ && EndedLikeStopped(ranks)) {  // the agent's own signal is on its way, if there is one
    supervisor_->Pause(kOwnSignalUs);
    LookAtSignals();
  }
  if (!question_ && in_.clock.MonotonicUs() > asked_us_ + kFreshUs) facts_.reset();
  // A script that was warned may have requeued its job before it ended: an earlier answer cannot show that.
  if (in_.spec.batch && in_.spec.requeue && !told_) {
    question_.reset();
    facts_.reset();
  }
  seen.ranks = ranks;
  seen.told = told_;
  seen.warned = warned_;
  LookForNext();
  seen.replaced = replaced_;
  seen.before_limit = before_limit_ && !told_;
  seen.restart = in_.start.restart;
  seen.begin_us = begin_us_;
  seen.cancel = ReadCancel();
  seen.facts = facts_;
  if (WantsFacts(in_.spec, seen) && !question_) Ask();
  while (WantsFacts(in_.spec, seen) && question_) {
    pollfd entry = question_->PollFd();
    const int64_t left = question_->DeadlineUs() - in_.clock.MonotonicUs();
    (void)poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left / 1000 + 1, 0, 1000)));
    TakeAnswer();
    seen.facts = facts_;
  }
  question_.reset();
  seen.now_us = in_.clock.WallUs();
  return seen;
}

}  // namespace overcap
