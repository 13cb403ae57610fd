// SPDX-License-Identifier: Apache-2.0
// Who is in the next group, and when it may begin.
#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "elastic/leader_state.h"

namespace overcap::elastic {

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

}  // namespace overcap::elastic
