// SPDX-License-Identifier: Apache-2.0
#include "elastic/leader_state.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "base/units.h"

namespace overcap::elastic {

LeaderState::LeaderState(LeaderConfig config, ElasticRecord record, int64_t term, int64_t quiet_us,
                         int64_t now_us)
    : config_(std::move(config)),
      record_(std::move(record)),
      term_(term),
      quiet_us_(quiet_us),
      gather_since_us_(now_us) {
  record_.term = term;
  record_.terms = TermsHash(config_.terms);
}

LeaderState::Member* LeaderState::Of(int connection) {
  const auto at = connections_.find(connection);
  return at == connections_.end() ? nullptr : at->second;
}

std::optional<Refusal> LeaderState::Judge(const JoinRequest& join) const {
  if (join.protocol != kElasticProtocol || join.version != config_.version) {
    return Refusal{ErrorCode::kConflict,
                   StrCat("agent '", ToUtf8(join.host), "' is of version ", ToUtf8(join.version),
                          ", the leader of version ", config_.version)};
  }
  const std::string difference = TermsDifference(join.terms, config_.terms);
  if (!difference.empty()) {
    return Refusal{ErrorCode::kConflict,
                   StrCat("agent '", ToUtf8(join.host), "' was started differently: ", difference)};
  }
  return std::nullopt;
}

void LeaderState::OnJoin(int connection, JoinRequest join, int64_t now_us) {
  if (auto refusal = Judge(join)) {
    messages_.emplace_back(connection, std::move(*refusal));
    drops_.push_back(connection);
    return;
  }
  std::unique_ptr<Member>& member = members_[join.agent];
  if (!member) {
    member = std::make_unique<Member>();
    member->joined_us = now_us;
  } else if (member->connection >= 0) {  // it has come again before we saw that it was gone
    connections_.erase(member->connection);
    drops_.push_back(member->connection);
  }
  member->join = std::move(join);
  member->connection = connection;
  member->closed_us = kNever;
  member->reported = false;
  member->heard_us = now_us;
  connections_[connection] = member.get();
  sweep_us_ = std::min(sweep_us_, After(now_us, config_.times.Silence()));
}

void LeaderState::OnReport(int connection, MemberReport report, int64_t now_us) {
  Member* member = Of(connection);
  if (member == nullptr) return drops_.push_back(connection);
  member->report = std::move(report);
  member->reported = true;
  member->heard_us = now_us;
  changed_ = true;
  Answer(member, now_us);
}

void LeaderState::OnBeat(int connection, const MemberBeat& beat, int64_t now_us) {
  Member* member = Of(connection);
  if (member == nullptr || !member->reported || beat.seq != member->report.seq) {
    return drops_.push_back(connection);
  }
  member->heard_us = now_us;
  member->report.sent_us = beat.sent_us;
  const bool settled = phase_ == Phase::kRunning && member->in_group && member->report.epoch == record_.epoch;
  if (!settled) return Answer(member, now_us);
  messages_.emplace_back(connection, LeaderNod{beat.sent_us, RightLeft(now_us)});
}

void LeaderState::OnClosed(int connection, int64_t now_us) {
  Member* member = Of(connection);
  if (member == nullptr) return;
  connections_.erase(connection);
  member->connection = -1;
  member->closed_us = now_us;
  changed_ = true;
  sweep_us_ = std::min(sweep_us_, After(now_us, config_.times.Reconnect()));
  if (!member->in_group || member->gone) members_.erase(member->join.agent);  // it has nothing to lose
}

// What is left of our own right: nobody may have more.
int64_t LeaderState::RightLeft(int64_t now_us) const {
  if (right_until_us_ == kNever) return config_.times.ttl;
  return std::clamp<int64_t>(right_until_us_ - now_us, 0, config_.times.ttl);
}

bool LeaderState::Silent(const Member& member, int64_t now_us) const {
  return now_us >= After(member.heard_us, config_.times.Silence());
}

// Those that are silent have no right any more; of the others a broken connection tells enough.
void LeaderState::Sweep(int64_t now_us) {
  sweep_us_ = kNever;
  std::vector<std::string> away;
  for (auto& [agent, member] : members_) {
    const bool silent = Silent(*member, now_us);
    if (silent && member->in_group && !member->gone) {
      if (MayHaveRanks(*member)) lost_.push_back(member->join.host);
      member->gone = true;
      changed_ = true;
    }
    if (silent) {
      away.push_back(agent);
      continue;
    }
    sweep_us_ = std::min(sweep_us_, After(member->heard_us, config_.times.Silence()));
    if (member->closed_us == kNever) continue;
    const int64_t broken = After(member->closed_us, config_.times.Reconnect());
    if (now_us < broken) {
      sweep_us_ = std::min(sweep_us_, broken);
    } else {
      changed_ = true;
    }
  }
  for (const std::string& agent : away) {
    Member& member = *members_[agent];
    if (member.connection >= 0) {
      connections_.erase(member.connection);
      drops_.push_back(member.connection);
    }
    if ((phase_ == Phase::kRunning || phase_ == Phase::kStoring) && member.in_group) {
      member.connection = -1;  // CheckRunning tells why it stops
      continue;
    }
    members_.erase(agent);
  }
}

void LeaderState::OnTime(int64_t now_us) {
  if (now_us >= sweep_us_) Sweep(now_us);
  Decide(now_us);
}

void LeaderState::Decide(int64_t now_us) {
  const bool timed = phase_ == Phase::kGather;
  if (!changed_ && !timed) return;
  changed_ = false;
  switch (phase_) {
    case Phase::kGather:
      return CheckGather(now_us);
    case Phase::kRunning:
      return CheckRunning(now_us);
    case Phase::kStopping:
      return CheckStopping(now_us);
    case Phase::kStoring:
    case Phase::kEnding:
    case Phase::kEnded:
      return;
  }
}

std::vector<LeaderState::Member*> LeaderState::Eligible() {
  std::vector<Member*> found;
  for (auto& [agent, member] : members_) {
    if (member->connection < 0 || !member->reported || member->report.leaving) continue;
    if (member->report.state == RanksState::kRunning) continue;  // of an earlier term; it is told to stop
    found.push_back(member.get());
  }
  const auto place = [](const Member* m) {
    const bool asks = m->join.node_rank >= 0;
    return std::tuple(m->group_rank >= 0 ? 0 : 1, m->group_rank, asks ? 0 : 1, m->join.node_rank,
                      m->joined_us, m->join.agent);
  };
  const bool all_ask =
      std::all_of(found.begin(), found.end(), [](const Member* m) { return m->join.node_rank >= 0; });
  std::sort(found.begin(), found.end(), [&](const Member* a, const Member* b) {
    if (all_ask && a->join.node_rank != b->join.node_rank) return a->join.node_rank < b->join.node_rank;
    return place(a) < place(b);
  });
  return found;
}

void LeaderState::CheckGather(int64_t now_us) {
  std::vector<Member*> found = Eligible();
  const int present = static_cast<int>(found.size());
  if (present < config_.min_nodes) {
    enough_since_us_ = kNever;
    if (now_us >= After(gather_since_us_, config_.join_timeout_us)) FailGathering(present);
    return;
  }
  if (enough_since_us_ == kNever) enough_since_us_ = now_us;
  // After a leader was lost, those whom it had are not waited for longer than they need.
  const int expected = record_.nodes > 0 ? std::min(record_.nodes - 1, config_.max_nodes) : config_.max_nodes;
  const bool last_call = first_group_ && present < expected;
  if (last_call && now_us < After(enough_since_us_, config_.last_call_us)) return;
  if (now_us < quiet_us_) return;
  if (present > config_.max_nodes) found.resize(static_cast<size_t>(config_.max_nodes));
  Form(std::move(found), now_us);
}

void LeaderState::FailGathering(int present) {
  std::string message = StrCat("only ", present, " of at least ", config_.min_nodes,
                               " nodes were there within ", FormatElapsed(config_.join_timeout_us));
  if (!plan_.why.empty()) message += StrCat(" after ", plan_.why);
  End(ExitStatus(ErrorCode::kUnavailable), std::move(message), failure_ ? failure_->traceback : "");
}

namespace {

// The names of `now` that are not in `before`, the first few; how many there are of them.
std::pair<std::vector<std::string>, int> Without(std::vector<std::string> now,
                                                 std::vector<std::string> before) {
  std::sort(now.begin(), now.end());
  std::sort(before.begin(), before.end());
  std::vector<std::string> more;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(more));
  const int count = static_cast<int>(more.size());
  if (more.size() > kMostNames) more.resize(kMostNames);
  return {std::move(more), count};
}

}  // namespace

void LeaderState::Form(std::vector<Member*> chosen, int64_t now_us) {
  for (auto& [agent, member] : members_)
    member->in_group = false, member->gone = false, member->group_rank = -1;
  const std::vector<std::string> names_before = std::exchange(names_, {});
  group_.clear();
  int first_rank = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i]->in_group = true;
    chosen[i]->group_rank = static_cast<int>(i);
    chosen[i]->first_rank = first_rank;
    first_rank += chosen[i]->join.ranks;
    group_.push_back(chosen[i]->join.agent);
    names_.push_back(ToUtf8(chosen[i]->join.host));
  }
  plan_.epoch = ++record_.epoch;
  record_.nodes = static_cast<int>(chosen.size());
  plan_.group_size = static_cast<int>(chosen.size());
  plan_.world_size = first_rank;
  plan_.restarts = record_.restarts;
  plan_.master_addr = chosen[0]->join.address;
  plan_.master_port = chosen[0]->report.port;
  plan_.took_us = now_us - gather_since_us_;
  std::tie(plan_.joined, plan_.joined_count) = Without(names_, names_before);
  std::tie(plan_.left, plan_.left_count) = Without(names_before, names_);
  failure_.reset();
  lost_.clear();
  phase_ = Phase::kStoring;
  store_ = record_;
}

void LeaderState::OnStored(const ElasticRecord& record, int64_t now_us) {
  if (record.ended && phase_ == Phase::kEnding) {
    phase_ = Phase::kEnded;
    return AnswerAll(now_us);
  }
  if (phase_ != Phase::kStoring || record.epoch != record_.epoch) return;
  phase_ = Phase::kRunning;
  first_group_ = false;
  grows_ = GrowthWaits();
  changed_ = true;
  AnswerAll(now_us);
}

bool LeaderState::GrowthWaits() const {
  if (config_.grow == Grow::kNo || static_cast<int>(group_.size()) >= config_.max_nodes) return false;
  return std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
    const Member& m = *entry.second;
    return !m.in_group && m.reported && m.connection >= 0 && !m.report.leaving &&
           m.report.state != RanksState::kRunning;
  });
}

// Of several things that have come at once, what explains the others counts.
void LeaderState::CheckRunning(int64_t now_us) {
  const Member* failed = nullptr;
  const Member* leaves = nullptr;
  std::string away;
  bool all_done = true, checkpoint = false;
  for (size_t i = 0; i < group_.size(); ++i) {
    const auto at = members_.find(group_[i]);
    if (at == members_.end()) {
      all_done = false;
      away = names_[i];
      continue;
    }
    Member& member = *at->second;
    const MemberReport& report = member.report;
    const bool ours = report.epoch == record_.epoch && member.reported;
    const bool broken =
        member.closed_us != kNever && now_us >= After(member.closed_us, config_.times.Reconnect());
    const bool stopped = ours && report.state == RanksState::kIdle && !report.failure;
    if (ours && report.failure && failed == nullptr) failed = &member;
    if (report.leaving && leaves == nullptr) leaves = &member;
    const bool is_done = ours && report.state == RanksState::kDone;
    if (!is_done && (member.gone || broken || stopped) && away.empty()) away = names_[i];
    all_done = all_done && is_done;
    if (!ours) continue;
    checkpoint = checkpoint || report.checkpoint > last_checkpoint_;
    last_checkpoint_ = std::max(last_checkpoint_, report.checkpoint);
    last_step_ = std::max(last_step_, report.step);
  }
  if (all_done) return End(0, "", "");
  if (leaves != nullptr) return BeginStop(StrCat("host ", NameOf(*leaves), " leaves"), true, false, now_us);
  if (failed != nullptr) {
    failure_ = failed->report.failure;
    failure_host_ = ToUtf8(failed->join.host);
    return BeginStop(FailureLine(*failure_, failure_host_), false, failure_->kind == "hung", now_us);
  }
  if (!away.empty()) return BeginStop(StrCat("host '", away, "' was cut off or lost"), false, false, now_us);
  const bool grows = GrowthWaits();
  if (grows && (config_.grow == Grow::kNow || checkpoint))
    return BeginStop("a node joined", true, false, now_us);
  if (grows == grows_) return;
  grows_ = grows;
  AnswerAll(now_us);  // ranks that save from now on yield
}

void LeaderState::BeginStop(std::string why, bool warn, bool stacks, int64_t now_us) {
  phase_ = Phase::kStopping;
  stop_ = {record_.epoch, warn, stacks, why};
  plan_.why = std::move(why);
  gather_since_us_ = now_us;
  enough_since_us_ = kNever;
  AnswerAll(now_us);
  changed_ = true;
  CheckStopping(now_us);
}

bool LeaderState::MayHaveRanks(const Member& member) const {
  if (!member.in_group || member.gone) return false;
  return member.report.epoch < record_.epoch || member.report.state == RanksState::kRunning;
}

void LeaderState::CheckStopping(int64_t now_us) {
  for (const auto& [agent, member] : members_) {
    if (member->reported && member->report.epoch == record_.epoch) {
      last_step_ = std::max(last_step_, member->report.step);
      last_checkpoint_ = std::max(last_checkpoint_, member->report.checkpoint);
    }
    if (MayHaveRanks(*member)) return;
  }
  Restart(now_us);
}

// Nothing is left of the group.
void LeaderState::Restart(int64_t now_us) {
  plan_.steps_lost =
      last_step_ >= 0 && last_checkpoint_ >= 0 ? std::max<int64_t>(0, last_step_ - last_checkpoint_) : -1;
  last_step_ = -1;
  if (failure_ && lost_.empty()) {
    NameSlowest();
    plan_.why = FailureLine(*failure_, failure_host_);
    if (record_.restarts >= config_.max_restarts) {
      const int status = failure_->exit_status > 0 ? failure_->exit_status : 1;
      return End(status, FailureLine(*failure_, failure_host_), failure_->traceback);
    }
    ++record_.restarts;
  } else if (!lost_.empty()) {
    plan_.why = StrCat("host '", ToUtf8(lost_[0]), "' was lost");
  }
  phase_ = Phase::kGather;
  std::erase_if(members_, [](const auto& entry) { return entry.second->connection < 0; });
  for (auto& [agent, member] : members_) member->in_group = false, member->gone = false;
  CheckGather(now_us);
  if (phase_ == Phase::kGather) AnswerAll(now_us);
}

// When all hang in a collective, the one that has come least far is the one that all wait for.
void LeaderState::NameSlowest() {
  if (failure_->kind != "hung") return;
  int64_t least = kNever;
  for (const auto& [agent, member] : members_) {
    const MemberReport& report = member->report;
    if (!member->in_group || report.slowest_rank < 0 || report.slowest_step >= least) continue;
    least = report.slowest_step;
    failure_->rank = report.slowest_rank;
    failure_host_ = ToUtf8(member->join.host);
    failure_->message = StrCat("it is the slowest, at step ", least);
  }
}

void LeaderState::End(int status, std::string message, std::string traceback) {
  end_ = {status, std::move(message), std::move(traceback)};
  record_.ended = ElasticRecord::Ended{end_.status, end_.message};
  phase_ = Phase::kEnding;
  store_ = record_;
}

OrderRun LeaderState::RunOrder(const Member& member) const {
  OrderRun order = plan_;
  order.group_rank = member.group_rank;
  order.first_rank = member.first_rank;
  return order;
}

Order LeaderState::OrderFor(const Member& member) const {
  const MemberReport& report = member.report;
  if (phase_ == Phase::kEnded) return end_;
  const bool idle = report.state != RanksState::kRunning;
  if (report.leaving && idle && !member.in_group) return OrderEnd{128 + 15, "it has left the group", ""};
  if (phase_ == Phase::kRunning && member.in_group && !member.gone) return RunOrder(member);
  if (phase_ == Phase::kStopping && member.in_group) return stop_;
  if (!idle) return OrderStop{report.epoch, false, false, "its group is over"};
  return OrderWait{
      StrCat(members_.size(), " of ", config_.min_nodes, ":", config_.max_nodes, " nodes are here")};
}

void LeaderState::Answer(Member* member, int64_t now_us) {
  if (member->connection < 0 || !member->reported) return;
  LeaderAnswer answer{member->report.sent_us, RightLeft(now_us), term_, false, OrderFor(*member)};
  answer.grows = phase_ == Phase::kRunning && config_.grow == Grow::kAtCheckpoint && grows_;
  // Counted from its last word, which is when its clock began.
  if (phase_ != Phase::kEnded && Silent(*member, now_us)) answer.right_us = 0;
  messages_.emplace_back(member->connection, std::move(answer));
}

void LeaderState::AnswerAll(int64_t now_us) {
  for (auto& [agent, member] : members_) Answer(member.get(), now_us);
}

int64_t LeaderState::NextUs() const {
  int64_t next = sweep_us_;
  if (phase_ != Phase::kGather) return next;
  if (enough_since_us_ == kNever) return std::min(next, After(gather_since_us_, config_.join_timeout_us));
  return std::min(next,
                  std::max(quiet_us_, After(enough_since_us_, first_group_ ? config_.last_call_us : 0)));
}

std::string LeaderState::NameOf(const Member& member) const {
  return StrCat("'", ToUtf8(member.join.host), "'");
}

}  // namespace overcap::elastic
