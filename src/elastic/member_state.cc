// SPDX-License-Identifier: Apache-2.0
#include "elastic/member_state.h"

#include <algorithm>
#include <utility>

namespace overcap::elastic {

void MemberState::OnConnected(int64_t now_us) {
  connected_ = true;
  last_sent_us_ = -1;
  Tell(now_us);
}

// Ranks stay until the right ends: the connection may come back.
void MemberState::OnClosed() {
  connected_ = false;
  next_beat_us_ = kNever;
}

void MemberState::Tell(int64_t now_us) {
  if (!connected_) return;
  ++report_.seq;
  report_.sent_us = now_us;
  report_sent_us_ = last_sent_us_ = now_us;
  report_heard_ = false;
  next_beat_us_ = After(now_us, times_.Beat());
  messages_.emplace_back(report_);
}

// Only what we have sent ourselves on this connection can begin a right.
void MemberState::Extend(int64_t echo_us, int64_t right_us, int64_t now_us) {
  if (!connected_ || last_sent_us_ < 0 || echo_us > last_sent_us_ || echo_us > now_us) return;
  if (echo_us >= report_sent_us_) report_heard_ = true;
  until_us_ = std::max(until_us_, After(echo_us, std::min(right_us, times_.ttl)));
}

void MemberState::OnNod(const LeaderNod& nod, int64_t now_us) {
  if (term_ != 0) Extend(nod.echo_us, nod.right_us, now_us);
}

void MemberState::OnAnswer(const LeaderAnswer& answer, int64_t now_us) {
  if (!connected_) return;
  if (answer.term != term_) {  // rights of another term are void, and so are its ranks
    if (Running()) Kill("another agent leads now");
    term_ = answer.term;
    until_us_ = 0;
  }
  Extend(answer.echo_us, answer.right_us, now_us);
  grows_ = answer.grows;
  if (answer.warned && Running() && !stopping_ && !std::exchange(report_.warned, true))
    actions_.emplace_back(WarnRanks{false});
  std::visit([&](const auto& order) { Obey(order, now_us); }, answer.order);
}

void MemberState::Obey(const OrderWait& order, int64_t) {
  waiting_for_ = order.waiting_for;
  if (Running()) Kill("the leader knows nothing of them");
}

void MemberState::Obey(const OrderRun& order, int64_t now_us) {
  if (order.epoch == report_.epoch) return;
  if (Running()) return Kill("the group is over");
  if (order.epoch < report_.epoch || now_us >= until_us_ - times_.Guard()) return;
  report_.epoch = order.epoch;
  report_.failure.reset();
  report_.step = report_.checkpoint = -1;
  report_.slowest_rank = -1;
  report_.slowest_step = -1;
  report_.warned = false;
  stopping_ = killed_ = stacked_ = false;
  term_at_us_ = kNever;
  if (report_.leaving) {
    report_.state = RanksState::kIdle;
    return Tell(now_us);
  }
  report_.state = RanksState::kRunning;
  actions_.emplace_back(StartRanks{order});
  Tell(now_us);
}

void MemberState::Obey(const OrderStop& order, int64_t now_us) {
  if (!Running()) {
    if (order.epoch <= report_.epoch) return;
    report_.epoch = order.epoch;  // it was never begun here, and never will be
    report_.state = RanksState::kIdle;
    report_.failure.reset();
    return Tell(now_us);
  }
  if (order.epoch < report_.epoch) return;
  if (order.stacks && !stacked_) {
    stacked_ = true;
    actions_.emplace_back(StackRanks{});
  }
  Stop(order.warn, now_us);
}

void MemberState::Obey(const OrderEnd& order, int64_t now_us) {
  end_ = order;
  if (Running()) return Stop(false, now_us);
  actions_.emplace_back(EndAgent{order});
}

void MemberState::Stop(bool warn, int64_t now_us) {
  if (stopping_) return;
  stopping_ = true;
  if (!warn || interrupted_) {
    actions_.emplace_back(StopRanks{});
    return;
  }
  actions_.emplace_back(WarnRanks{});
  term_at_us_ = After(now_us, warn_us_);
}

// Ranks that do not listen have the time from now on, not from the end of the warning.
void MemberState::OnWarned(bool heard, int64_t now_us) {
  if (!heard && term_at_us_ != kNever) term_at_us_ = now_us;
}

void MemberState::Kill(std::string why) {
  if (killed_) return;
  stopping_ = killed_ = true;
  term_at_us_ = kNever;
  actions_.emplace_back(KillRanks{std::move(why)});
}

void MemberState::OnRankFailed(ElasticFailure failure, int64_t now_us) {
  if (stopping_ || !Running() || report_.failure) return;  // it was told to end
  report_.failure = std::move(failure);
  Tell(now_us);
}

void MemberState::OnRanksEnded(bool well, int64_t now_us) {
  if (!Running()) return;
  report_.state = well && !stopping_ && !report_.failure ? RanksState::kDone : RanksState::kIdle;
  term_at_us_ = kNever;
  Tell(now_us);
  if (end_) actions_.emplace_back(EndAgent{*end_});
}

void MemberState::OnWarning(int64_t now_us) {
  if (Running() && !std::exchange(report_.warned, true)) Tell(now_us);
}

void MemberState::OnStep(int64_t step) {
  if (Running()) report_.step = std::max(report_.step, step);
}

void MemberState::OnSlowest(int rank, int64_t step) {
  if (!Running()) return;
  report_.slowest_rank = rank;
  report_.slowest_step = step;
}

bool MemberState::OnCheckpoint(int64_t step, int64_t now_us) {
  if (!Running()) return false;
  report_.checkpoint = std::max(report_.checkpoint + (step < 0 ? 1 : 0), step);
  report_.step = std::max(report_.step, step);
  Tell(now_us);
  return grows_;
}

void MemberState::OnLeave(int64_t now_us, bool interrupted) {
  if (report_.leaving) return;
  interrupted_ = interrupted;
  report_.leaving = true;
  if (connected_) return Tell(now_us);
  LeaveAlone(now_us);
}

// Who wants to leave and has no leader to tell leaves.
void MemberState::LeaveAlone(int64_t now_us) {
  if (Running()) return Stop(true, now_us);
  if (std::exchange(left_, true)) return;
  actions_.emplace_back(EndAgent{{128 + 15, "it was told to stop", ""}});
}

void MemberState::OnTime(int64_t now_us) {
  if (report_.leaving && !connected_) LeaveAlone(now_us);
  if (Running() && now_us >= KillAtUs()) Kill("no leader has answered for too long");
  if (now_us >= term_at_us_) {
    term_at_us_ = kNever;
    actions_.emplace_back(StopRanks{});
  }
  if (!connected_ || now_us < next_beat_us_) return;
  if (!report_heard_) return Tell(now_us);
  last_sent_us_ = now_us;
  next_beat_us_ = After(now_us, times_.Beat());
  messages_.emplace_back(MemberBeat{report_.seq, now_us});
}

int64_t MemberState::NextUs() const {
  int64_t next = std::min(next_beat_us_, term_at_us_);
  if (Running() && !killed_) next = std::min(next, KillAtUs());
  return next;
}

}  // namespace overcap::elastic
