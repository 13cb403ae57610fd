// SPDX-License-Identifier: Apache-2.0
#include "launch/link/head_state.h"

#include <algorithm>
#include <limits>
#include <signal.h>

#include "base/text.h"
#include "sys/signal_inbox.h"

namespace overcap::node_link {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr size_t kNamesInMessage = 5;

// A far deadline stays far.
int64_t Later(int64_t now_us, int64_t by_us) {
  return by_us > kNever - now_us ? kNever : now_us + by_us;
}

}  // namespace

HeadState::HeadState(const Attempt& attempt, int64_t now_us, HeadTimes times)
    : attempt_(attempt),
      times_(times),
      ranks_(attempt.plan.world_size, RankState::kUnknown),
      stacks_until_us_(kNever),
      stop_until_us_(kNever),
      second_word_us_(kNever),
      children_until_us_(kNever) {
  const int64_t until = attempt.connect_us > 0 ? Later(now_us, attempt.connect_us) : kNever;
  hosts_.assign(attempt.plan.hosts.size(), {Host::kSilent, until, kNever});
}

void HeadState::OnHello(int host, int64_t now_us) {
  if (hosts_[host].state != Host::kSilent) return;
  hosts_[host].state = Host::kReady;
  const auto ready = [](const HostState& h) { return h.state == Host::kReady; };
  if (stopping_ || !std::all_of(hosts_.begin(), hosts_.end(), ready)) return;
  for (HostState& each : hosts_) each.state = Host::kRunning;
  started_ = true;
  last_output_us_ = now_us;
  orders_.push_back(Order::kStart);
}

void HeadState::OnBegun(int rank) {
  if (ranks_[rank] == RankState::kUnknown) ranks_[rank] = RankState::kBegun;
}

void HeadState::OnEnded(const RankFailure& how, int64_t now_us) {
  ranks_[how.rank] = RankState::kEnded;
  if (!how.end_known) {
    if (!stopping_ && !first_untold_) first_untold_ = how;
  } else if (!how.end.ok() && Blame(AttemptEnd::Cause::kRankFailed)) {
    end_.first = how;
    BeginStop(attempt_.grace_us, now_us);
  }
  OnTime(now_us);
}

void HeadState::OnStack(int rank, std::string text, int64_t now_us) {
  stacks_[rank] = std::move(text);
  OnTime(now_us);
}

void HeadState::OnNothingLeft(int host, int64_t now_us) {
  if (hosts_[host].state != Host::kFailed) hosts_[host].state = Host::kFinished;
  OnTime(now_us);
}

void HeadState::OnClosing(int host, int64_t now_us) {
  hosts_[host].lost_at_us = std::min(hosts_[host].lost_at_us, Later(now_us, times_.settle));
}

void HeadState::OnLost(int host, const std::string& why, int64_t now_us) {
  if (hosts_[host].state == Host::kFinished || hosts_[host].state == Host::kFailed) return;
  Lose(host);
  if (Blame(AttemptEnd::Cause::kHostFailed)) {
    end_.message = why;
    end_.code = started_ ? ErrorCode::kUnavailable : ErrorCode::kUsage;
    BeginStop(attempt_.grace_us, now_us);
  } else {
    end_.notes.push_back(why);
  }
  OnTime(now_us);
}

void HeadState::Lose(int host) {
  hosts_[host].state = Host::kFailed;
  end_.bad_hosts.push_back(attempt_.plan.hosts[host].name);
}

void HeadState::OnCommonChildEnd(const ProcessEnd& end, const std::string& words, int64_t now_us) {
  if (children_step_ == 0) {  // else it was us who ended it, and its status says nothing
    common_child_end_ = {end, words, Later(now_us, times_.settle), Later(now_us, attempt_.grace_us)};
  }
  OnTime(now_us);
}

void HeadState::OnChildren(int count, int64_t now_us) {
  children_ = count;
  OnTime(now_us);
}

void HeadState::OnSignal(int signal, int64_t now_us) {
  if (Blame(AttemptEnd::Cause::kCancelled)) end_.signal = signal;
  if (now_us >= second_word_us_ && signal == SIGINT && stop_grace_us_ > 0) {
    stopping_ = false;
    BeginStop(0, now_us);
  }
  second_word_us_ = std::min(second_word_us_, Later(now_us, kSameWordUs));
  BeginStop(attempt_.grace_us, now_us);
  OnTime(now_us);
}

bool HeadState::Interrupted() const {
  return end_.cause == AttemptEnd::Cause::kCancelled && end_.signal == SIGINT;
}

void HeadState::CannotRun(const Error& error, int64_t now_us) {
  if (Blame(AttemptEnd::Cause::kCannotRun)) {
    end_.message = error.message;
    end_.code = error.code;
  }
  BeginStop(attempt_.grace_us, now_us);
  OnTime(now_us);
}

void HeadState::AllowUntil(int host, int64_t until_us) {
  hosts_[host].hello_until_us = until_us;
  hosts_[host].lost_at_us = kNever;
}

bool HeadState::Blame(AttemptEnd::Cause cause) {
  if (blamed_) return false;
  blamed_ = true;
  end_.cause = cause;
  return true;
}

// Hosts that have not said hello have no ranks that could be told: their connection ends instead.
void HeadState::BeginStop(int64_t grace_us, int64_t now_us) {
  if (stopping_) return;
  stopping_ = true;
  stop_grace_us_ = grace_us;
  stop_until_us_ = Later(Later(now_us, grace_us), times_.margin);
  stacks_until_us_ = kNever;
  for (HostState& host : hosts_) {
    if (host.state == Host::kSilent) host.state = Host::kFailed;
  }
  orders_.push_back(Order::kStop);
}

void HeadState::OnTime(int64_t now_us) {
  CheckHellos(now_us);
  CheckLost(now_us);
  CheckIdle(now_us);
  CheckStacks(now_us);
  CheckStop(now_us);
  CheckCommonChild(now_us);
  CheckChildren(now_us);
}

void HeadState::CheckHellos(int64_t now_us) {
  std::vector<int> late;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].state == Host::kSilent && now_us >= hosts_[i].hello_until_us) {
      late.push_back(static_cast<int>(i));
    }
  }
  if (late.empty()) return;
  for (const int host : late) Lose(host);
  const std::string message =
      StrCat(NamesOf(late), " did not answer within ", attempt_.connect_us / 1'000'000, " s");
  if (Blame(AttemptEnd::Cause::kHostFailed)) {
    end_.message = message;
    end_.code = ErrorCode::kUsage;
  }
  BeginStop(attempt_.grace_us, now_us);
}

void HeadState::CheckLost(int64_t now_us) {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (now_us < hosts_[i].lost_at_us) continue;
    hosts_[i].lost_at_us = kNever;
    OnLost(static_cast<int>(i),
           StrCat("host '", attempt_.plan.hosts[i].name, "' is lost: its connection was closed"), now_us);
  }
}

void HeadState::CheckIdle(int64_t now_us) {
  if (attempt_.idle_us <= 0 || !started_ || stopping_ || stacks_until_us_ != kNever || AllSettled()) return;
  if (now_us - last_output_us_ < attempt_.idle_us || !Blame(AttemptEnd::Cause::kIdle)) return;
  stacks_until_us_ = Later(now_us, times_.stacks);
  orders_.push_back(Order::kStacks);
}

void HeadState::CheckStacks(int64_t now_us) {
  if (stacks_until_us_ == kNever || (!StacksComplete() && now_us < stacks_until_us_)) return;
  orders_.push_back(Order::kWriteStacks);
  BeginStop(attempt_.grace_us, now_us);
}

bool HeadState::StacksComplete() const {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank] != RankState::kEnded && !stacks_.contains(static_cast<int>(rank))) return false;
  }
  return true;
}

void HeadState::CheckStop(int64_t now_us) {
  if (!stopping_ || gave_up_ || now_us < stop_until_us_) return;
  gave_up_ = true;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].state == Host::kFinished || hosts_[i].state == Host::kFailed) continue;
    Lose(static_cast<int>(i));
    end_.notes.push_back(
        StrCat("host '", attempt_.plan.hosts[i].name, "' did not say in time that its ranks have ended"));
  }
  orders_.push_back(Order::kGiveUp);
  children_step_ = 2;
  children_until_us_ = Later(now_us, times_.child_exit);
}

void HeadState::CheckCommonChild(int64_t now_us) {
  if (!common_child_end_) return;
  if (AllSettled() || now_us >= common_child_end_->judge_at_us) {
    JudgeCommonChild(now_us);
    common_child_end_->judge_at_us = kNever;
  }
  if (now_us < common_child_end_->stop_at_us) return;
  common_child_end_->stop_at_us = kNever;
  BeginStop(attempt_.grace_us, now_us);
}

// What the launcher's own end tells: that hosts which are silent will stay so, and how ranks ended whose end
// nobody saw.
void HeadState::JudgeCommonChild(int64_t now_us) {
  const ProcessEnd end = common_child_end_->end;
  const std::string& words = common_child_end_->words;
  const auto silent = [](const HostState& h) { return h.state == Host::kSilent; };
  if (std::any_of(hosts_.begin(), hosts_.end(), silent)) {
    if (Blame(AttemptEnd::Cause::kCannotRun)) end_.message = words;
    return BeginStop(attempt_.grace_us, now_us);
  }
  if (end.ok() || blamed_) return;
  if (first_untold_) {
    (void)Blame(AttemptEnd::Cause::kRankFailed);
    end_.first = first_untold_;
    end_.first->end = end;
  } else {
    (void)Blame(AttemptEnd::Cause::kCannotRun);
    end_.message = words;
  }
  BeginStop(attempt_.grace_us, now_us);
}

void HeadState::CheckChildren(int64_t now_us) {
  if (children_ == 0 || !AllSettled()) return;
  if (children_until_us_ == kNever) children_until_us_ = Later(now_us, times_.child_exit);
  if (now_us < children_until_us_) return;
  switch (children_step_++) {
    case 0:
      orders_.push_back(Order::kTermChildren);
      children_until_us_ = Later(now_us, times_.child_kill);
      return;
    case 1:
      orders_.push_back(Order::kKillChildren);
      children_until_us_ = Later(now_us, times_.child_exit);
      return;
    default:
      end_.notes.push_back(StrCat(CountOf(children_, "process"), " would not die by SIGKILL"));
      children_ = 0;
  }
}

int64_t HeadState::NextUs() const {
  int64_t next = std::min(stacks_until_us_, gave_up_ ? kNever : stop_until_us_);
  for (const HostState& host : hosts_) {
    if (host.state == Host::kSilent) next = std::min(next, host.hello_until_us);
    next = std::min(next, host.lost_at_us);
  }
  if (attempt_.idle_us > 0 && started_ && !blamed_) {
    next = std::min(next, Later(last_output_us_, attempt_.idle_us));
  }
  if (common_child_end_) {
    next = std::min({next, common_child_end_->judge_at_us, common_child_end_->stop_at_us});
  }
  if (children_ > 0 && AllSettled()) next = std::min(next, children_until_us_);
  return next;
}

std::vector<HeadState::Order> HeadState::TakeOrders() {
  return std::exchange(orders_, {});
}

bool HeadState::AllSettled() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const HostState& h) {
    return h.state == Host::kFinished || h.state == Host::kFailed;
  });
}

bool HeadState::Done() const {
  return AllSettled() && children_ == 0 && orders_.empty();
}

std::string HeadState::StacksText() const {
  std::string text;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const int host = attempt_.plan.HostOf(static_cast<int>(rank));
    const auto stack = stacks_.find(static_cast<int>(rank));
    text += StrCat("== rank ", rank, " on host '", attempt_.plan.hosts[host].name, "'\n");
    if (stack != stacks_.end()) {
      text += StrCat(Trim(stack->second), "\n\n");
    } else {
      text += ranks_[rank] == RankState::kEnded ? "it had ended\n\n" : "its host did not tell in time\n\n";
    }
  }
  return text;
}

std::string HeadState::NamesOf(const std::vector<int>& hosts) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(hosts.size(), kNamesInMessage); ++i) {
    names.push_back(StrCat("'", attempt_.plan.hosts[hosts[i]].name, "'"));
  }
  const std::string more =
      hosts.size() > kNamesInMessage ? StrCat(" and ", hosts.size() - kNamesInMessage, " more") : "";
  return StrCat(hosts.size() == 1 ? "host " : "hosts ", Join(names, ", "), more);
}

}  // namespace overcap::node_link
