// SPDX-License-Identifier: Apache-2.0
// The ranks of one epoch on this node.
#include <algorithm>
#include <signal.h>

#include "base/text.h"
#include "control/elastic/elastic_agent.h"
#include "control/elastic/elastic_ranks.h"
#include "launch/logs/log_sinks.h"
#include "launch/rank_error.h"
#include "sys/oom.h"

namespace overcap {

namespace {

constexpr int kLastLines = 20;

}  // namespace

void ElasticAgent::NoteEpoch(const elastic::OrderRun& plan) {
  NoteForGroup("epoch", [&](JsonWriter* json) {
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

std::vector<RankView> ElasticAgent::Views() const {
  std::vector<RankView> views = parts_.options.views;
  for (size_t i = 0; i < views.size(); ++i) {
    const int local = static_cast<int>(i);
    views[i].mark =
        LineMark(parts_.options.mark, parts_.options.role, local, plan_.first_rank + local, parts_.host);
  }
  return views;
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
  logs_->ShowAs(Views());
  logs_->Bound(LogsMax(parts_.world.config, parts_.world.variables));
  std::vector<GroupMember> members =
      ElasticMembers({parts_.options, plan_, parts_.env, parts_.world.folder, log_folder_,
                      parts_.options.run_id, parts_.socket.name()});
  for (GroupMember& member : members) member.request.announce_fd = parts_.guard.announce_fd();
  if (!parts_.options.pipes) logs_->LetRanksWrite(NowUs());
  const LogSinks sinks(&*logs_, parts_.world.clock, &members);
  port_ = {};  // rank 0 takes it now
  GroupLimits limits;
  limits.leave_alone = parts_.leave_alone;
  limits.companion_decides = true;
  const GroupEnd end = parts_.supervisor.Run(&members, limits, this, this);
  parts_.guard.Forget();
  logs_->TakeBack(parts_.world.clock.WallUs());
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
  logs_->LookAtAll(parts_.world.clock.WallUs());
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

void ElasticAgent::OnOutput(int, int, int64_t) {
  output_us_ = NowUs();
}

}  // namespace overcap
