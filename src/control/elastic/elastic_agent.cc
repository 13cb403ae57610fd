// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/elastic_agent.h"

#include <algorithm>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/elastic/elastic_ranks.h"
#include "launch/local/idle_watch.h"
#include "sys/oom.h"

namespace overcap {

using elastic::kNever;
using elastic::Standing;

namespace {

constexpr int64_t kConnectUs = 3'000'000;
constexpr int64_t kLingerUs = 3'000'000;    // for members to hear that the job has ended
constexpr int64_t kTroubleUs = 15'000'000;  // a rendezvous that was never reached
constexpr int kLastLines = 20;

std::string NnodesText(const ElasticOptions& options) {
  return StrCat(options.min_nodes, ":", options.max_nodes);
}

}  // namespace

ElasticAgent::ElasticAgent(Parts parts)
    : parts_(std::move(parts)),
      times_{parts_.options.ttl_us},
      events_(parts_.world.clock, parts_.folder.path() + "/events.jsonl"),
      member_(times_, parts_.options.grace_us),
      link_(parts_.world.clock, &parts_.world.random),
      alone_since_us_(NowUs()) {
  const ElasticOptions& options = parts_.options;
  terms_ = {{"command", ShellJoin(options.command)},
            {"--nnodes", NnodesText(options)},
            {"--max-restarts", StrCat(options.max_restarts)},
            {"--ttl", FormatElapsed(options.ttl_us)},
            {"--grow", StrCat(static_cast<int>(options.grow))}};
}

ElasticAgent::~ElasticAgent() = default;

elastic::LeaderConfig ElasticAgent::Config() const {
  const ElasticOptions& options = parts_.options;
  elastic::LeaderConfig config;
  config.times = times_;
  config.min_nodes = options.min_nodes;
  config.max_nodes = options.max_nodes;
  config.max_restarts = options.max_restarts;
  config.grow = options.grow;
  config.join_timeout_us = options.join_timeout_us;
  config.last_call_us = options.last_call_us;
  config.version = OVERCAP_VERSION;
  config.terms = terms_;
  return config;
}

elastic::JoinRequest ElasticAgent::Join() const {
  elastic::JoinRequest join;
  join.version = OVERCAP_VERSION;
  join.agent = parts_.name;
  join.host = parts_.host;
  join.address = !parts_.options.local_addr.empty() ? parts_.options.local_addr : link_.address();
  join.ranks = parts_.options.ranks;
  join.node_rank = parts_.options.node_rank;
  join.terms = terms_;
  return join;
}

void ElasticAgent::HoldNewPort() {
  port_ = elastic::HoldPort();
  member_.OnPort(port_.port);
}

Result<ElasticEnd> ElasticAgent::Run() {
  HoldNewPort();
  while (!Finished()) {
    if (start_) {
      RunEpoch();
      continue;
    }
    std::vector<pollfd> fds{{parts_.supervisor.SignalFd(), POLLIN, 0}};
    const int64_t until = Prepare(&fds);
    const int64_t wait_us = until == kNever ? kNever : std::max<int64_t>(0, until - NowUs());
    const timespec timeout{wait_us / 1'000'000, wait_us % 1'000'000 * 1000};
    (void)ppoll(fds.data(), fds.size(), wait_us == kNever ? nullptr : &timeout, nullptr);
    Pump();
  }
  const int signal = parts_.supervisor.CancelRequested() ? parts_.supervisor.CancelSignal() : 0;
  if (leader_) {
    hub_.reset();
    parts_.rendezvous.Leave();
  }
  link_.Close();
  if (error_) return Fail(*error_);
  ElasticEnd end;
  end.status = member_.Leaving() && signal != 0 ? 128 + signal : end_->status;
  end.message = end_->message;
  end.traceback = end_->traceback;
  end.rank_failed = !member_.Leaving() && end_->status != 0 && end_->message.starts_with("rank ");
  end.attempts = std::move(records_);
  events_.Add("ended",
              [&](JsonWriter* json) { json->Field("status", end.status).Field("message", end.message); });
  return end;
}

// A leader stays until those it led know that it is over.
bool ElasticAgent::Finished() const {
  if (error_) return true;
  if (!end_ || start_) return false;
  if (!leader_ || !leader_->Ended()) return true;
  return hub_->Count() <= 1 || NowUs() >= linger_until_us_;
}

int64_t ElasticAgent::Prepare(std::vector<pollfd>* fds) {
  int64_t next = std::min(parts_.rendezvous.Prepare(fds), link_.Prepare(fds));
  if (logs_) logs_->WantsToShow(fds);
  fds->push_back({parts_.socket.PollFd(), POLLIN, 0});
  next = std::min(next, member_.NextUs());
  if (member_.Connected()) next = std::min(next, heard_us_ + times_.Silence());
  if (leader_) {
    fds->push_back({hub_->PollFd(), POLLIN, 0});
    next = std::min({next, leader_->NextUs(), hub_->NextUs()});
  }
  if (parts_.options.hang_us > 0 && member_.Running() && !stopping_) {
    next = std::min(next, NowUs() + std::min<int64_t>(parts_.options.hang_us / 4, 1'000'000));
  }
  if (trouble_since_us_ != kNever && !ever_joined_) next = std::min(next, trouble_since_us_ + kTroubleUs);
  if (!member_.Connected())
    next = std::min(next, elastic::After(alone_since_us_, parts_.options.join_timeout_us));
  return std::min(next, linger_until_us_);
}

bool ElasticAgent::Act(std::span<const pollfd>) {
  if (logs_) logs_->Show();
  Pump();
  return stop_;
}

void ElasticAgent::Pump() {
  if (const auto acted = parts_.rendezvous.Act(); !acted && !error_) {
    return Stop(acted.error().message, acted.error().code, acted.error().hint);
  }
  FollowStanding();
  PumpLeader();
  PumpLink();
  parts_.socket.Act([this](const RankSocket::Word& word) { return TakeWord(word); });
  if (parts_.supervisor.CancelRequested() && !leave_noted_) {
    leave_noted_ = true;
    member_.OnLeave(NowUs());
  }
  CheckHang();
  CheckReach();
  Settle();
  PumpLeader();
}

// Ranks that run are ended first.
void ElasticAgent::Stop(std::string message, ErrorCode code, std::string hint) {
  if (!error_) error_ = Error{code, std::move(message), std::move(hint)};
  stop_ = true;
  grace_us_ = 0;
}

void ElasticAgent::FollowStanding() {
  const Standing& standing = parts_.rendezvous.standing();
  switch (standing.kind) {
    case Standing::Kind::kSeeking:
      if (leader_) StepDown();
      return;
    case Standing::Kind::kLeads:
      if (leader_ && leader_->term() != standing.term) StepDown();
      if (!leader_) BeginLeading(standing);
      if (leader_) leader_->OnRight(standing.right_until_us);
      return;
    case Standing::Kind::kFollows:
      if (leader_) StepDown();
      if (link_.state() == elastic::MemberLink::State::kIdle) link_.Begin(standing.leader, kConnectUs);
      return;
    case Standing::Kind::kFinished:
      if (end_ || error_) return;
      if (!ever_joined_) {
        return Stop(StrCat("job '", parts_.options.place.id, "' has already ended with status ",
                           standing.record.ended->status),
                    ErrorCode::kConflict, "give the new job another id");
      }
      end_ = elastic::OrderEnd{standing.record.ended->status, standing.record.ended->message, ""};
      stop_ = true;
  }
}

void ElasticAgent::BeginLeading(const Standing& standing) {
  const std::string& terms = standing.record.terms;
  if (!terms.empty() && terms != elastic::TermsHash(terms_)) {
    return Stop(StrCat("job '", parts_.options.place.id, "' was begun with another command or other flags"),
                ErrorCode::kConflict, "give the new job another id");
  }
  auto hub = elastic::Hub::Make(parts_.rendezvous.Listener(), standing.leader.key, parts_.world.clock,
                                &parts_.world.random);
  if (!hub) return Stop(hub.error().message, hub.error().code);
  hub_ = std::move(*hub);
  leader_.emplace(Config(), standing.record, standing.term, standing.quiet_us, NowUs());
  events_.Add("leads", [&](JsonWriter* json) { json->Field("term", standing.term); });
  if (member_.Connected()) member_.OnClosed();
  link_.Begin(standing.leader, kConnectUs);
}

void ElasticAgent::StepDown() {
  leader_.reset();
  hub_.reset();
  link_.Close();
  member_.OnClosed();
  alone_since_us_ = NowUs();
}

void ElasticAgent::PumpLeader() {
  if (!leader_) return;
  hub_->Act(&*leader_);
  leader_->OnTime(NowUs());
  if (const auto record = leader_->TakeStore()) parts_.rendezvous.Keep(*record);
  if (const auto kept = parts_.rendezvous.TakeKept()) {
    leader_->OnStored(*kept, NowUs());
    leader_->OnTime(NowUs());
  }
  hub_->Send(&*leader_);
}

void ElasticAgent::PumpLink() {
  const std::vector<elastic::ToMember> got = link_.Act();
  if (link_.TakeOpened()) Opened();
  if (!got.empty()) heard_us_ = NowUs();
  for (const elastic::ToMember& message : got) Obey(message);
  // A cable that was pulled closes no connection.
  const bool deaf = member_.Connected() && NowUs() >= heard_us_ + times_.Silence();
  if (link_.state() != elastic::MemberLink::State::kFailed && !deaf) return;
  last_problem_ = deaf ? "the leader has fallen silent" : link_.Problem();
  if (member_.Connected()) alone_since_us_ = NowUs();
  member_.OnClosed();
  link_.Close();
  if (leader_ && parts_.rendezvous.standing().kind == Standing::Kind::kLeads) {
    link_.Begin(parts_.rendezvous.standing().leader, kConnectUs);
  } else {
    parts_.rendezvous.LookAgain();
  }
}

void ElasticAgent::Opened() {
  heard_us_ = NowUs();
  link_.Send(Join());
  member_.OnConnected(NowUs());
}

void ElasticAgent::Obey(const elastic::ToMember& message) {
  if (const auto* refusal = std::get_if<elastic::Refusal>(&message)) {
    return Stop(refusal->message, refusal->code);
  }
  const bool first = !std::exchange(ever_joined_, true);
  if (const auto* answer = std::get_if<elastic::LeaderAnswer>(&message)) {
    if (first || answer->term != member_.term()) {
      events_.Add("joined", [&](JsonWriter* json) {
        json->Field("term", answer->term).Field("leads", leader_.has_value());
      });
    }
    if (const auto* stop = std::get_if<elastic::OrderStop>(&answer->order)) stop_why_ = stop->why;
    member_.OnAnswer(*answer, NowUs());
  } else if (const auto* nod = std::get_if<elastic::LeaderNod>(&message)) {
    member_.OnNod(*nod, NowUs());
  }
}

// Nobody waits for ever for who will not come.
void ElasticAgent::CheckReach() {
  if (error_ || end_ || member_.Connected() || member_.Running()) {
    trouble_since_us_ = kNever;
    return;
  }
  const int64_t now_us = NowUs();
  const std::string trouble = parts_.rendezvous.Trouble();
  if (trouble.empty()) {
    trouble_since_us_ = kNever;
  } else if (trouble_since_us_ == kNever) {
    trouble_since_us_ = now_us;
  }
  const int64_t wait_us = parts_.options.join_timeout_us;
  const bool never_reached = !ever_joined_ && trouble_since_us_ != kNever &&
                             now_us - trouble_since_us_ >= std::min(kTroubleUs, wait_us);
  if (!never_reached && now_us < elastic::After(alone_since_us_, wait_us)) return;
  const std::string why = !trouble.empty() ? trouble : last_problem_;
  Stop(StrCat("no leader of job '", parts_.options.place.id, "' was found at '", parts_.options.place.Text(),
              "' within ", FormatElapsed(never_reached ? std::min(kTroubleUs, wait_us) : wait_us),
              why.empty() ? "" : ": ", why),
       ErrorCode::kUnavailable);
}

bool ElasticAgent::TakeWord(const RankSocket::Word& word) {
  if (!member_.Running() || word.epoch != plan_.epoch) return false;
  const int local = word.rank - plan_.first_rank;
  if (local < 0 || local >= static_cast<int>(signs_.size())) return false;
  RankSigns& sign = signs_[local];
  sign.alive_us = NowUs();
  sign.beats = sign.beats || !word.checkpoint;
  sign.step = std::max(sign.step, word.step);
  member_.OnStep(word.step);
  const RankSigns* slowest = nullptr;
  for (const RankSigns& each : signs_) {
    if (each.step >= 0 && (slowest == nullptr || each.step < slowest->step)) slowest = &each;
  }
  if (slowest != nullptr) {
    member_.OnSlowest(plan_.first_rank + static_cast<int>(slowest - signs_.data()), slowest->step);
  }
  if (!word.checkpoint) return false;
  events_.Add("checkpoint",
              [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("step", word.step); });
  return member_.OnCheckpoint(word.step, NowUs());
}

// A rank that has ever said that it lives is judged by that; the others by what any of them writes.
void ElasticAgent::CheckHang() {
  const int64_t limit = parts_.options.hang_us;
  if (limit == 0 || !member_.Running() || !started_ || stopping_) return;
  const int64_t now_us = NowUs();
  int late = -1;
  bool any_beats = false;
  for (size_t i = 0; i < signs_.size(); ++i) {
    if (!signs_[i].beats || pids_[i] == 0) continue;
    any_beats = true;
    const bool slower = late < 0 || signs_[i].step < signs_[late].step;
    if (now_us - signs_[i].alive_us >= limit && slower) late = static_cast<int>(i);
  }
  if (late < 0 && (any_beats || now_us - output_us_ < limit)) return;
  stopping_ = true;
  elastic::ElasticFailure failure;
  failure.rank = plan_.first_rank + std::max(late, 0);
  failure.exit_status = 124;
  failure.kind = "hung";
  failure.message = late < 0
                        ? StrCat("no rank wrote anything for ", FormatElapsed(limit))
                        : StrCat("no heartbeat for ", FormatElapsed(limit), ", at step ", signs_[late].step);
  events_.Add("hung",
              [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("rank", failure.rank); });
  member_.OnRankFailed(std::move(failure), now_us);
}

void ElasticAgent::KeepStacksNow() {
  std::vector<std::pair<int, std::string>> stacks = StacksOfRanks(pids_, NowUs());
  for (auto& [rank, text] : stacks) rank += plan_.first_rank;
  if (const auto kept = KeepStacks(log_folder_, stacks); !kept) parts_.voice.Warn(kept.error().message);
}

void ElasticAgent::Settle() {
  member_.OnTime(NowUs());
  for (const elastic::MemberAction& action : member_.TakeActions()) Carry(action);
  for (const elastic::ToLeader& message : member_.TakeMessages()) link_.Send(message);
  if (member_.Running()) parts_.guard.KillAt(member_.KillAtUs() + times_.Guard() / 2);
}

void ElasticAgent::Carry(const elastic::MemberAction& action) {
  if (const auto* start = std::get_if<elastic::StartRanks>(&action)) {
    start_ = start->plan;
  } else if (std::get_if<elastic::WarnRanks>(&action) != nullptr) {
    kill(getpid(), SIGUSR1);  // the supervisor passes it on
    stopping_ = true;
  } else if (std::get_if<elastic::StackRanks>(&action) != nullptr) {
    KeepStacksNow();
  } else if (std::get_if<elastic::StopRanks>(&action) != nullptr) {
    stop_ = stopping_ = true;
    grace_us_ = parts_.options.grace_us;
  } else if (const auto* now = std::get_if<elastic::KillRanks>(&action)) {
    stop_ = stopping_ = true;
    grace_us_ = 0;
    stop_why_ = now->why;
    events_.Add("cut_off",
                [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("why", now->why); });
    parts_.voice.Warn(StrCat("ranks are killed: ", now->why));
  } else if (const auto* end = std::get_if<elastic::EndAgent>(&action)) {
    end_ = end->how;
    linger_until_us_ = NowUs() + kLingerUs;
  }
}

// ---- the ranks of one epoch

void ElasticAgent::NoteEpoch(const elastic::OrderRun& plan) {
  events_.Add("epoch", [&](JsonWriter* json) {
    json->Field("epoch", plan.epoch)
        .Field("group_rank", plan.group_rank)
        .Field("group_size", plan.group_size);
    json->Field("world_size", plan.world_size)
        .Field("first_rank", plan.first_rank)
        .Field("restarts", plan.restarts);
    json->Field("took_us", plan.took_us).Field("joined", plan.joined).Field("left", plan.left);
    json->Field("joined_count", plan.joined_count)
        .Field("left_count", plan.left_count)
        .Field("why", plan.why);
    if (plan.steps_lost >= 0) json->Field("steps_lost", plan.steps_lost);
  });
  const std::string why = plan.why.empty() ? "" : StrCat(" after ", plan.why);
  const std::string text = StrCat("epoch ", plan.epoch, ": ", CountOf(plan.world_size, "rank"), " on ",
                                  CountOf(plan.group_size, "node"), why);
  records_.empty() ? parts_.voice.Note(text) : parts_.voice.Say(text);
}

void ElasticAgent::RunEpoch() {
  plan_ = std::move(*start_);
  start_.reset();
  stop_ = stopping_ = started_ = false;
  grace_us_ = -1;
  stop_why_.clear();
  const int ranks = parts_.options.ranks;
  pids_.assign(ranks, 0);
  signs_.assign(ranks, {NowUs(), -1, false});
  output_us_ = NowUs();
  oom_kills_ = KernelOomKills();
  NoteEpoch(plan_);
  records_.emplace_back();
  records_.back().attempt = static_cast<int>(plan_.epoch);
  records_.back().started_us = parts_.world.clock.WallUs();
  const auto folder = parts_.folder.MakeAttempt(static_cast<int>(plan_.epoch));
  auto logs = folder ? RankLogs::Make(*folder, ranks, parts_.options.tee, plan_.first_rank)
                     : Result<RankLogs>(Fail(folder.error()));
  if (!logs) {
    member_.OnRankFailed({plan_.first_rank, 70, 0, false, "cannot_start", logs.error().message, ""}, NowUs());
    member_.OnRanksEnded(false, NowUs());
    return Settle();
  }
  log_folder_ = *folder;
  logs_ = std::move(*logs);
  std::vector<GroupMember> members =
      ElasticMembers({parts_.options, plan_, parts_.env, parts_.world.folder, log_folder_,
                      parts_.options.place.id, parts_.socket.name()});
  for (int i = 0; i < ranks; ++i) members[i].log_fd = logs_->FileOf(i);
  port_ = {};  // rank 0 takes it now
  GroupLimits limits;
  limits.leave_alone = parts_.leave_alone;
  limits.companion_decides = true;
  const GroupEnd end = parts_.supervisor.Run(&members, limits, this, this);
  parts_.guard.Watch({});
  if (!end.reason.empty()) ReportFailure(end.first_failed, end.end, end.reason);
  FinishRecord(end);
  HoldNewPort();
  member_.OnRanksEnded(end.cause == StopCause::kNone, NowUs());
  Settle();  // the others need not wait for what is still to be shown here
  PumpLeader();
  // A reader that does not read is waited for, and the group goes on meanwhile.
  logs_->ShowRest([&] {
    Pump();
    return parts_.supervisor.CancelRequested() || start_ || error_;
  });
  if (!logs_->Problem().empty()) parts_.voice.Warn(logs_->Problem());
  logs_.reset();
}

void ElasticAgent::FinishRecord(const GroupEnd& end) {
  AttemptRecord& record = records_.back();
  using Cause = AttemptEnd::Cause;
  record.ended_us = parts_.world.clock.WallUs();
  const auto& failure = member_.report().failure;
  if (failure) {
    record.end.cause = failure->kind == "hung" ? Cause::kIdle : Cause::kRankFailed;
    RankFailure first;
    first.rank = failure->rank;
    first.host = parts_.host;
    first.end = {failure->exit_status, failure->signal};
    first.out_of_memory = failure->out_of_memory;
    first.reason = end.reason;
    record.end.first = first;
    record.line = elastic::FailureLine(*failure, parts_.host);
  } else if (end.cause != StopCause::kNone) {
    record.end.cause = Cause::kCancelled;
    record.line = stop_why_;
    record.end.signal = SIGTERM;
  }
  events_.Add("stopped",
              [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("why", record.line); });
}

void ElasticAgent::OnStarted(const std::vector<pid_t>& pids) {
  started_ = true;
  pids_ = pids;
  parts_.guard.Watch(pids);
  output_us_ = NowUs();
  for (RankSigns& sign : signs_) sign.alive_us = NowUs();
}

void ElasticAgent::OnMemberEnd(int member, const ProcessEnd& end) {
  if (member < static_cast<int>(pids_.size())) pids_[member] = 0;
  output_us_ = NowUs();
  if (NowUs() >= member_.KillAtUs()) Settle();  // the guard has ended it: our right was over
  if (end.ok() || stopping_ || !started_) return;
  ReportFailure(member, end, "");
}

void ElasticAgent::ReportFailure(int member, const ProcessEnd& end, const std::string& reason) {
  elastic::ElasticFailure failure;
  failure.rank = plan_.first_rank + std::max(member, 0);
  failure.exit_status = end.exit_status;
  failure.signal = end.signal;
  failure.out_of_memory = end.signal == SIGKILL && KernelOomKills() > oom_kills_;
  failure.kind = reason.empty() ? "failed" : "cannot_start";
  const RankError told = ReadErrorFile(ErrorFileOf(log_folder_, failure.rank));
  failure.message = reason.empty() ? told.message : reason;
  failure.traceback = ToUtf8(told.traceback);
  if (failure.traceback.empty()) failure.traceback = logs_->LastLines(std::max(member, 0), kLastLines);
  if (failure.traceback.size() > elastic::kMostTraceback) {
    failure.traceback.erase(0, failure.traceback.size() - elastic::kMostTraceback);
  }
  events_.Add("failed", [&](JsonWriter* json) {
    json->Field("epoch", plan_.epoch).Field("rank", failure.rank).Field("exit_status", failure.exit_status);
    json->Field("signal", failure.signal).Field("message", failure.message);
  });
  stopping_ = true;
  member_.OnRankFailed(std::move(failure), NowUs());
}

void ElasticAgent::OnOutput(int member, int stream, int64_t bytes) {
  if (bytes > 0) logs_->Wrote(member, stream, bytes, parts_.world.clock.WallUs());
  output_us_ = NowUs();
}

}  // namespace overcap
