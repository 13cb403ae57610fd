// SPDX-License-Identifier: Apache-2.0
// What each member is told.
#include <algorithm>

#include "base/text.h"
#include "elastic/leader_state.h"

namespace overcap::elastic {

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
  answer.warned = phase_ == Phase::kRunning && member->in_group && warned_epoch_ == record_.epoch;
  // Counted from its last word, which is when its clock began.
  if (phase_ != Phase::kEnded && Silent(*member, now_us)) answer.right_us = 0;
  messages_.emplace_back(member->connection, std::move(answer));
}

void LeaderState::AnswerAll(int64_t now_us) {
  for (auto& [agent, member] : members_) Answer(member.get(), now_us);
}

}  // namespace overcap::elastic
