// SPDX-License-Identifier: Apache-2.0
#include "elastic/leader_state.h"

#include <algorithm>

#include "base/text.h"

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
  // An agent that this job has never seen belongs to the next job of that name.
  const bool over = phase_ == Phase::kEnding || phase_ == Phase::kEnded;
  if (over && !members_.contains(join.agent)) return drops_.push_back(connection);
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
  if (members_.size() > group_.size()) changed_ = true;  // RefuseSurplus() waits for this beat
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
