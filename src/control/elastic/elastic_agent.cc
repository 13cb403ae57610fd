// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/elastic_agent.h"

#include <algorithm>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

namespace overcap {

using elastic::kNever;

namespace {

constexpr int64_t kLookUs = 30'000'000;   // whether there is something to do, also when nothing says so
constexpr int64_t kLingerUs = 3'000'000;  // for members to hear that the job has ended

// Ranks that handle the warning have this long before their TERM.
int64_t WarnUs(int64_t grace_us) {
  return grace_us / 3;
}

std::string NnodesText(const ElasticOptions& options) {
  return StrCat(options.min_nodes, ":", options.max_nodes);
}

}  // namespace

ElasticAgent::ElasticAgent(Parts parts)
    : parts_(std::move(parts)),
      times_{parts_.options.ttl_us},
      events_(parts_.world.clock, parts_.folder.path() + "/events.jsonl",
              std::string(parts_.world.variables.Get("OVERCAP_GROUP_EVENTS")), parts_.host,
              std::string(parts_.world.variables.Get("OVERCAP_ATTEMPT"))),
      member_(times_, WarnUs(parts_.options.grace_us)),
      link_(parts_.world.clock, &parts_.world.random),
      alone_since_us_(NowUs()) {
  const ElasticOptions& options = parts_.options;
  terms_ = {{"command", options.program},
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
  config.version = elastic::ElasticVersion();
  config.agent = parts_.name;
  config.terms = terms_;
  return config;
}

void ElasticAgent::HoldNewPort() {
  port_ = elastic::HoldPort(parts_.options.master_port);
  member_.OnPort(parts_.options.master_port != 0 ? parts_.options.master_port : port_.port);
}

Result<ElasticEnd> ElasticAgent::Run() {
  HoldNewPort();
  const ElasticOptions& options = parts_.options;
  const bool has_rank0 = options.max_nodes == 1 || options.node_rank == 0;
  if (options.master_port != 0 && port_.port == 0 && has_rank0) {
    return Fail(ErrorCode::kUnavailable,
                StrCat("port ", options.master_port, ", which is to be MASTER_PORT, is taken on this host"),
                "--master-port PORT names another");
  }
  while (!Finished()) {
    if (start_) {
      RunEpoch();
      continue;
    }
    std::vector<pollfd> fds{{parts_.supervisor.SignalFd(), POLLIN, 0}};
    const int64_t until = Prepare(&fds);
    // A signal that was taken while the last ranks ended wakes nobody up any more.
    const bool told = parts_.supervisor.CancelRequested() && !leave_noted_;
    const int64_t wait_us = told ? 0 : std::clamp<int64_t>(until - NowUs(), 0, kLookUs);
    const timespec timeout{wait_us / 1'000'000, wait_us % 1'000'000 * 1000};
    (void)ppoll(fds.data(), fds.size(), &timeout, nullptr);
    Pump();
  }
  const int signal = parts_.supervisor.CancelRequested() ? parts_.supervisor.CancelSignal() : 0;
  if (leader_) {
    hub_.reset();
    parts_.rendezvous.Leave();
  }
  link_.Close();
  if (error_) {
    NoteForGroup("ended", [&](JsonWriter* json) {
      json->Field("status", ExitStatus(error_->code)).Field("message", error_->message);
    });
    return Fail(*error_);
  }
  ElasticEnd end;
  end.status = member_.Leaving() && signal != 0 ? 128 + signal : end_->status;
  end.message = end_->message;
  end.traceback = end_->traceback;
  end.rank_failed = !member_.Leaving() && end_->status != 0 && end_->message.starts_with("rank ");
  end.attempts = std::move(records_);
  NoteForGroup("ended",
               [&](JsonWriter* json) { json->Field("status", end.status).Field("message", end.message); });
  return end;
}

// INT is a person's Ctrl-C.
int ElasticAgent::StopSignal() const {
  const int signal = parts_.supervisor.CancelSignal();
  const std::vector<int>& listed = parts_.options.signals;
  return signal == SIGINT || std::find(listed.begin(), listed.end(), signal) != listed.end() ? signal
                                                                                             : SIGTERM;
}

// The job's own log has what its leader says: one voice, from one host.
void ElasticAgent::NoteForGroup(const char* event, const GroupEvents::Fields& fields) {
  leader_ ? events_.AddForJob(event, fields) : events_.Add(event, fields);
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
  if (logs_) {
    logs_->WantsToShow(fds);
    next = std::min(next, logs_->PrepareLook(fds));
  }
  fds->push_back({parts_.socket.PollFd(), POLLIN, 0});
  next = std::min(next, member_.NextUs());
  if (Looks()) next = std::min(next, look_us_);
  if (member_.Connected()) next = std::min(next, heard_us_ + times_.Silence());
  if (leader_) {
    if (!hub_->Rests()) fds->push_back({hub_->PollFd(), POLLIN, 0});
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
  if (logs_) {
    if (logs_->Look(NowUs(), parts_.world.clock.WallUs())) output_us_ = NowUs();
    logs_->Show();
  }
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
    member_.OnLeave(NowUs(), StopSignal() != SIGTERM);
  }
  if (std::exchange(warnings_, parts_.supervisor.WarningsSeen()) != parts_.supervisor.WarningsSeen())
    member_.OnWarning(NowUs());
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

void ElasticAgent::Settle() {
  member_.OnTime(NowUs());
  for (const elastic::MemberAction& action : member_.TakeActions()) Carry(action);
  member_.OnTime(NowUs());  // a warning that no rank handles
  for (const elastic::MemberAction& action : member_.TakeActions()) Carry(action);
  for (const elastic::ToLeader& message : member_.TakeMessages()) link_.Send(message);
  if (member_.Running()) parts_.guard.KillAt(member_.KillAtUs() + times_.Guard() / 2);
}

void ElasticAgent::Carry(const elastic::MemberAction& action) {
  if (const auto* start = std::get_if<elastic::StartRanks>(&action)) {
    start_ = start->plan;
  } else if (const auto* warn = std::get_if<elastic::WarnRanks>(&action)) {
    stopping_ = stopping_ || warn->stops;
    member_.OnWarned(parts_.supervisor.WarnGroup(), NowUs());
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

}  // namespace overcap
