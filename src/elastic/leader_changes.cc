// SPDX-License-Identifier: Apache-2.0
// What ends a group: failures, losses, those who leave and those who come.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "elastic/leader_state.h"

namespace overcap::elastic {

bool LeaderState::GrowthWaits() const {
  if (config_.grow == Grow::kNo || static_cast<int>(group_.size()) >= config_.max_nodes) return false;
  return std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
    const Member& m = *entry.second;
    return !m.in_group && m.reported && m.connection >= 0 && !m.report.leaving &&
           m.report.state != RanksState::kRunning;
  });
}

// A complete group needs no further agent: it was most likely started for another job, and would wait for
// this one's end. It is refused once each node of the group has been heard of since it came, so that it can
// still take the place of a node that has just died. With --grow never it waits as a reserve.
void LeaderState::RefuseSurplus() {
  if (config_.grow == Grow::kNo || static_cast<int>(group_.size()) < config_.max_nodes) return;
  int64_t all_heard_us = kNever;
  for (const std::string& agent : group_) {
    const auto at = members_.find(agent);
    if (at == members_.end()) return;
    const Member* member = at->second.get();
    if (member->gone || member->connection < 0 || member->report.leaving) return;
    if (agent != config_.agent) all_heard_us = std::min(all_heard_us, member->heard_us);
  }
  std::erase_if(members_, [&](const auto& entry) {
    const auto& [agent, member] = entry;
    const bool waits = member->reported && member->connection >= 0 && !member->report.leaving &&
                       member->report.state != RanksState::kRunning;
    if (member->in_group || agent == config_.agent || !waits || member->joined_us >= all_heard_us)
      return false;
    messages_.emplace_back(member->connection,
                           Refusal{ErrorCode::kConflict,
                                   StrCat("agent ", NameOf(*member), " is one too many: the group has its ",
                                          CountOf(config_.max_nodes, "node"),
                                          " already; another job needs a port or --rdzv-id of its own")});
    drops_.push_back(member->connection);
    connections_.erase(member->connection);
    return true;
  });
}

// Of several things that have come at once, what explains the others counts.
void LeaderState::CheckRunning(int64_t now_us) {
  const Member* failed = nullptr;
  const Member* leaves = nullptr;
  std::string away;
  bool all_done = true, checkpoint = false, warned = false;
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
    warned = warned || report.warned;
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
  RefuseSurplus();
  const bool grows = GrowthWaits();
  if (grows && (config_.grow == Grow::kNow || checkpoint))
    return BeginStop("a node joined", true, false, now_us);
  const bool tell = warned && std::exchange(warned_epoch_, record_.epoch) != record_.epoch;
  if (grows == grows_ && !tell) return;
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

}  // namespace overcap::elastic
