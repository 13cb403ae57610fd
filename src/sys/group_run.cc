// SPDX-License-Identifier: Apache-2.0
#include "sys/group_run.h"

#include <algorithm>
#include <errno.h>
#include <iterator>
#include <limits>
#include <poll.h>
#include <set>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "sys/proc_table.h"
#include "sys/warning.h"

namespace overcap {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kPatience = 365LL * 86'400 * 1'000'000;  // in effect until the stop that follows

GroupRun::GroupRun(Supervisor* supervisor, std::vector<GroupMember>* members, const GroupLimits& limits,
                   GroupObserver* observer, GroupCompanion* companion)
    : super_(*supervisor),
      members_(*members),
      limits_(limits),
      observer_(*observer),
      companion_(companion),
      running_(members->size()) {}

GroupEnd GroupRun::Run() {
  StartAll();
  while (children_left_ && !gave_up_) {
    Decide();
    if (children_left_ && !gave_up_) Wait();
  }
  DrainAll();
  return end_;
}

void GroupRun::StartAll() {
  super_.child_ended_ = false;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Result<void> started = Start(&members_[i], &running_[i]);
    if (!started) return StartFailed(static_cast<int>(i), started.error());
  }
  now_us_ = super_.clock_.MonotonicUs();
  if (limits_.time_us > 0) time_limit_us_ = now_us_ + limits_.time_us;
  if (limits_.time_us > 0 && limits_.warn_us > 0)
    warn_at_us_ = std::max(now_us_, time_limit_us_ - limits_.warn_us);
  if (limits_.over_memory) memory_next_us_ = now_us_ + super_.times_.memory_poll;
  observer_.OnStarted(pids_);
}

Result<void> GroupRun::MakePumps(const GroupMember& member, Running* running) {
  const bool writes_itself = member.stdout_file >= 0;
  for (int stream = writes_itself ? 2 : 1; stream <= (member.split || writes_itself ? 2 : 1); ++stream) {
    OC_TRY(pump, member.sink != nullptr ? OutputPump::MakeToSink(member.sink, stream)
                                        : OutputPump::Make(member.log_fd, stream));
    running->pumps.push_back(std::move(pump));
  }
  return {};
}

Result<void> GroupRun::Start(GroupMember* member, Running* running) {
  OC_TRY_VOID(MakePumps(*member, running));
  SpawnRequest& request = member->request;
  request.stdout_fd = member->stdout_file >= 0 ? member->stdout_file : running->pumps.front().WriteFd();
  request.stderr_fd = running->pumps.back().WriteFd();
  request.want_pidfd = members_.size() > 1;
  Result<Spawned> spawned = Spawn(request);
  if (!spawned) {
    for (OutputPump& pump : running->pumps) pump.CloseWriteEnd();
    return Fail(std::move(spawned).error());
  }
  running->pid = spawned->pid;
  pids_.push_back(spawned->pid);
  ++alive_;
  children_left_ = true;
  if (request.want_pidfd) WatchDeath(running, std::move(spawned->pidfd));
  return {};
}

// Best effort: where that cannot be, the members are told in the kernel's own order, that of their start; one
// that dies before it is watched, microseconds after its start, counts as dying then.
void GroupRun::WatchDeath(Running* running, Fd pidfd) {
  if (!deaths_) deaths_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!deaths_ || !pidfd) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = running->pid;
  if (epoll_ctl(deaths_.Get(), EPOLL_CTL_ADD, pidfd.Get(), &event) == 0) running->pidfd = std::move(pidfd);
}

void GroupRun::StartFailed(int index, const Error& error) {
  end_.cause = StopCause::kMemberFailed;
  end_.first_failed = index;
  end_.end = {error.code == ErrorCode::kNotFound ? 127 : 126, 0};
  end_.reason = error.message;
  observer_.OnMemberEnd(index, end_.end);
  now_us_ = super_.clock_.MonotonicUs();
  ladder_.emplace(now_us_, super_.times_.grace, super_.times_.kill);
}

void GroupRun::Decide() {
  now_us_ = super_.clock_.MonotonicUs();
  if (super_.warnings_ > 0) TakeWarning();
  if (warn_at_us_ != 0 && now_us_ >= warn_at_us_) {
    warn_at_us_ = 0;
    end_.warned = alive_ > 0 && !ladder_ && Warn();
  }
  if (super_.cancel_ && (alive_ > 0 || early_) && !limits_.companion_decides)
    BeginStop(StopCause::kCancelled, super_.times_.grace);
  if (super_.hurry_ && ladder_) ladder_->Hurry(now_us_);
  if (time_limit_us_ != 0 && now_us_ >= time_limit_us_ && alive_ > 0) {
    BeginStop(StopCause::kTimeLimit, super_.times_.grace);
  }
  if (memory_next_us_ != 0 && now_us_ >= memory_next_us_) CheckMemory();
  if (alive_ == 0 && !ladder_) SweepStrays();
  if (ladder_) Climb();
}

void GroupRun::CheckMemory() {
  memory_next_us_ = now_us_ + super_.times_.memory_poll;
  if (alive_ > 0 && limits_.over_memory()) BeginStop(StopCause::kMemoryLimit, 0);
}

void GroupRun::BeginStop(StopCause cause, int64_t grace_us) {
  if (end_.cause == StopCause::kNone) end_.cause = cause;
  if (early_) ladder_->Limit(now_us_, grace_us);
  early_ = false;
  if (!ladder_) ladder_.emplace(now_us_, grace_us, super_.times_.kill);
}

// All members have ended, something they started has not. What still holds the output open (a `tee` that is
// writing its last lines) gets a moment to end by itself.
void GroupRun::SweepStrays() {
  if (linger_until_us_ == 0) linger_until_us_ = now_us_ + super_.times_.linger;
  if (now_us_ < linger_until_us_ && !OutputEnded() && !super_.cancel_) return;
  ladder_.emplace(now_us_, super_.times_.stray_grace, super_.times_.kill);
}

void GroupRun::Climb() {
  const StopLadder::Step step = ladder_->Next(now_us_);
  if (step == StopLadder::Step::kWait) return;
  if (NothingToStop()) {
    children_left_ = false;
    return;
  }
  switch (step) {
    case StopLadder::Step::kWait:
      return;
    case StopLadder::Step::kTerm:
      return Stop();
    case StopLadder::Step::kKill:
      if (limits_.kill_more) limits_.kill_more();
      SignalAll(SIGKILL);
      return;
    case StopLadder::Step::kGiveUp:
      return GiveUp();
  }
}

void GroupRun::GiveUp() {
  gave_up_ = true;
  for (pid_t pid : Stoppable(ChildrenOf(getpid()))) {
    if (!super_.given_up_.insert(pid).second) continue;
    observer_.OnNote(StrCat("process ", pid, " would not die by SIGKILL and was left behind"));
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].pid > 0) MemberEnded(running_[i].pid, {128 + SIGKILL, SIGKILL});
  }
}

// Members by their process group, which is atomic; the rest one by one. A member that is not yet reaped keeps
// its number, so the group cannot be somebody else's.
void GroupRun::SignalAll(int sig) {
  std::vector<pid_t> groups;
  for (const Running& member : running_) {
    if (member.pid > 0 && kill(-member.pid, sig) == 0) groups.push_back(member.pid);
  }
  for (pid_t pid : Stoppable(ChildrenOf(getpid()))) {
    if (std::find(groups.begin(), groups.end(), getpgid(pid)) == groups.end()) kill(pid, sig);
  }
}

// Processes that ignore the signal, as the background processes of a shell ignore INT, get TERM in its place.
void GroupRun::Stop() {
  const bool asked = end_.cause == StopCause::kCancelled && alive_ > 0 && companion_ != nullptr;
  const int signal = asked ? companion_->StopSignal() : SIGTERM;
  SignalAll(signal);
  for (const pid_t pid : signal != SIGTERM ? Stoppable(ChildrenOf(getpid())) : std::vector<pid_t>()) {
    if (IgnoresSignal(StatusOfProcess(pid), signal)) kill(pid, SIGTERM);
  }
  SignalAll(SIGCONT);  // a stopped process takes no TERM
}

bool GroupRun::Warn() {
  if (!limits_.warn_members_only) {
    return SendWarning(Stoppable(ChildrenOf(getpid())),
                       limits_.also_warned ? limits_.also_warned() : std::vector<pid_t>(),
                       limits_.many_nodes) > 0;
  }
  bool any = false;
  for (const Running& member : running_) {
    if (member.pid > 0) any = SendWarningTo(member.pid) || any;
  }
  return any;
}

// A group that does not handle the warning gets TERM now, so that it has all of the time after the warning.
void GroupRun::TakeWarning() {
  super_.warnings_ = 0;
  if (Warn() || !limits_.term_when_unheard || alive_ == 0 || ladder_) return;
  BeginStop(StopCause::kCancelled, kPatience);
  early_ = true;
}

void GroupRun::Wait() {
  std::vector<pollfd> fds{{super_.inbox_.PollFd(), POLLIN, 0}};
  std::vector<std::pair<size_t, size_t>> pumps;  // member, stream
  for (size_t i = 0; i < running_.size(); ++i) {
    for (size_t stream = 0; stream < running_[i].pumps.size(); ++stream) {
      const OutputPump& pump = running_[i].pumps[stream];
      if (pump.Ended() || pump.Blocked()) continue;
      fds.push_back({pump.ReadFd(), POLLIN, 0});
      pumps.emplace_back(i, stream);
    }
  }
  const size_t own = fds.size();
  int64_t deadline = NextDeadline();
  if (companion_ != nullptr) deadline = std::min(deadline, companion_->Prepare(&fds));
  // What the companion or an observer took from the inbox wakes nobody up any more.
  const int64_t left_us = super_.unseen_ ? 0 : deadline - super_.clock_.MonotonicUs();
  const int64_t wait_us = std::clamp<int64_t>(left_us, 0, super_.times_.look);
  const timespec timeout{wait_us / 1'000'000, wait_us % 1'000'000 * 1000};
  const int woken = ppoll(fds.data(), fds.size(), &timeout, nullptr);
  if (woken < 0) return;
  std::vector<PumpTurn> ready;
  for (size_t i = 0; i < pumps.size(); ++i) {
    if (fds[i + 1].revents != 0) ready.push_back(BeforePump(pumps[i].first, pumps[i].second));
  }
  PumpReady(ready);
  if (fds[0].revents != 0) super_.TakeSignals();
  super_.unseen_ = false;
  if (super_.child_ended_ || woken == 0) Reap();
  if (companion_ != nullptr) AskCompanion(std::span(fds).subspan(own));
}

void GroupRun::AskCompanion(std::span<const pollfd> fds) {
  if (!companion_->Act(fds) || alive_ == 0) return;
  now_us_ = super_.clock_.MonotonicUs();
  const int64_t grace_us = companion_->GraceUs();
  if (grace_us == 0 && ladder_) ladder_->Hurry(now_us_);
  BeginStop(StopCause::kCancelled, grace_us < 0 ? super_.times_.grace : grace_us);
}

int64_t GroupRun::NextDeadline() const {
  int64_t next = kNever;
  if (warn_at_us_ != 0 && alive_ > 0 && !ladder_) next = std::min(next, warn_at_us_);
  if (time_limit_us_ != 0 && alive_ > 0 && (!ladder_ || early_)) next = std::min(next, time_limit_us_);
  if (memory_next_us_ != 0 && alive_ > 0 && (!ladder_ || early_)) next = std::min(next, memory_next_us_);
  if (alive_ == 0 && !ladder_) next = std::min(next, linger_until_us_);
  if (ladder_) next = std::min(next, ladder_->NextUs());
  return next;
}

void GroupRun::Reap() {
  super_.child_ended_ = false;
  siginfo_t dead{};
  pid_t before = 0;
  bool any_child = true;
  for (;; before = dead.si_pid) {
    ReapDeathsInOrder();
    dead.si_pid = 0;
    any_child = waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (!any_child || dead.si_pid == 0) break;
    // One that is watched died just now, and perhaps another one before it: look again.
    if (!IsWatched(dead.si_pid) || dead.si_pid == before) ReapOne(dead.si_pid);
  }
  children_left_ = any_child && !NothingToStop();
}

// A wait for any child would tell those that died at about the same time in the order of their start, and
// blame rank 0 for what another rank began.
void GroupRun::ReapDeathsInOrder() {
  epoll_event ended[16];
  int count = 0;
  while (deaths_ && (count = epoll_wait(deaths_.Get(), ended, std::size(ended), 0)) > 0) {
    for (int i = 0; i < count; ++i) {
      for (Running& member : running_) {
        if (member.pid == ended[i].data.fd) member.pidfd.Reset();
      }
      ReapOne(ended[i].data.fd);  // fails while a debugger has not let it go; its end is seen later then
    }
  }
}

void GroupRun::ReapOne(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, WNOHANG) != pid) return;
  super_.given_up_.erase(pid);
  MemberEnded(pid, ProcessEndOf(status));
}

bool GroupRun::IsWatched(pid_t pid) const {
  return std::any_of(running_.begin(), running_.end(),
                     [pid](const Running& r) { return r.pid == pid && r.pidfd.Valid(); });
}

void GroupRun::MemberEnded(pid_t pid, const ProcessEnd& end) {
  const auto at =
      std::find_if(running_.begin(), running_.end(), [&](const Running& r) { return r.pid == pid; });
  if (at == running_.end()) return;  // adopted from a member
  at->pid = -1;
  at->pidfd.Reset();
  // Held until now: one wake-up for the end of a member, not a second for its pipe's.
  for (OutputPump& pump : at->pumps) pump.CloseWriteEnd();
  --alive_;
  const int index = static_cast<int>(at - running_.begin());
  observer_.OnMemberEnd(index, end);
  if (end.ok()) return;
  if (end_.end.ok()) end_.end = end;
  if (end_.cause != StopCause::kNone || limits_.independent) return;
  end_.cause = StopCause::kMemberFailed;
  end_.first_failed = index;
  now_us_ = super_.clock_.MonotonicUs();
  if (alive_ > 0) BeginStop(StopCause::kMemberFailed, super_.times_.grace);
}

std::vector<pid_t> GroupRun::Stoppable(std::vector<pid_t> pids) const {
  if (!limits_.leave_alone) return pids;
  std::set<pid_t> spared;
  for (const pid_t pid : pids) {
    if (spared.contains(pid) || !limits_.leave_alone(pid)) continue;
    spared.insert(pid);
    for (const pid_t child : ChildrenOf(pid)) spared.insert(child);
  }
  std::erase_if(pids, [&](pid_t pid) { return spared.contains(pid); });
  return pids;
}

// All members have ended, and what is left of them cannot or must not be stopped. When nothing runs any more,
// the last one is dying and its signal is on its way.
bool GroupRun::NothingToStop() const {
  if (alive_ > 0) return false;
  const std::vector<pid_t> left = ChildrenOf(getpid());
  if (left.empty()) return false;
  const std::vector<pid_t> targets = Stoppable(left);
  return std::all_of(targets.begin(), targets.end(),
                     [this](pid_t pid) { return super_.given_up_.contains(pid); });
}

// Members that write much are shared out between this thread and its helper: whole members, since both
// streams of one go to the same place of the same file. The helper never touches a sink.
void GroupRun::PumpReady(const std::vector<PumpTurn>& ready) {
  std::vector<OutputPump*> theirs, ours;
  size_t busy = 0;
  for (size_t at = 0; at < ready.size();) {
    const size_t member = ready[at].member;
    const bool hand_over = WritesMuch(running_[member]) && busy++ % 2 == 1;
    for (; at < ready.size() && ready[at].member == member; ++at) {
      (hand_over ? theirs : ours).push_back(&PumpOf(ready[at]));
    }
  }
  const int64_t now_us = super_.clock_.MonotonicUs();
  const bool helped = !theirs.empty() && helper_.Begin(theirs, now_us);
  if (!helped) ours.insert(ours.end(), theirs.begin(), theirs.end());
  for (OutputPump* pump : ours) pump->Pump(now_us);
  if (helped) helper_.Finish();
  for (const PumpTurn& turn : ready) AfterPump(turn);
}

bool GroupRun::WritesMuch(const Running& member) {
  return std::any_of(member.pumps.begin(), member.pumps.end(),
                     [](const OutputPump& pump) { return pump.ToFile() && pump.Busy(); });
}

GroupRun::PumpTurn GroupRun::BeforePump(size_t index, size_t stream) const {
  const OutputPump& pump = running_[index].pumps[stream];
  return {index, stream, pump.moved_bytes(), pump.dropped_bytes()};
}

void GroupRun::AfterPump(const PumpTurn& turn) {
  Running& member = running_[turn.member];
  const OutputPump& pump = PumpOf(turn);
  if (pump.moved_bytes() > turn.moved || pump.dropped_bytes() > turn.dropped) {
    observer_.OnOutput(static_cast<int>(turn.member), pump.stream(), pump.moved_bytes() - turn.moved);
  }
  if (member.drop_noted || pump.drop_error() == 0) return;
  member.drop_noted = true;
  observer_.OnNote(StrCat("output of rank ", turn.member,
                          " is dropped: its log cannot be written: ", strerror(pump.drop_error())));
}

void GroupRun::PumpOne(size_t index, size_t stream) {
  const PumpTurn turn = BeforePump(index, stream);
  PumpOf(turn).Pump(super_.clock_.MonotonicUs());
  AfterPump(turn);
}

// Whether there may be more to read now.
bool GroupRun::PumpAll(size_t index) {
  bool more = false;
  for (size_t stream = 0; stream < running_[index].pumps.size(); ++stream) {
    const OutputPump& pump = running_[index].pumps[stream];
    const int64_t before = pump.moved_bytes() + pump.dropped_bytes();
    PumpOne(index, stream);
    more = more || pump.moved_bytes() + pump.dropped_bytes() > before;
  }
  return more;
}

// True when a sink that could take no more may do so now: only the companion can have made room.
bool GroupRun::WaitForSink(size_t index, int64_t deadline) {
  const auto& pumps = running_[index].pumps;
  const bool blocked = std::any_of(pumps.begin(), pumps.end(),
                                   [](const OutputPump& pump) { return !pump.Ended() && pump.Blocked(); });
  if (!blocked || companion_ == nullptr) return false;
  std::vector<pollfd> fds;
  const int64_t until = std::min(deadline, companion_->Prepare(&fds));
  const int64_t wait_us = std::max<int64_t>(0, until - super_.clock_.MonotonicUs());
  if (poll(fds.data(), fds.size(), static_cast<int>(wait_us / 1000) + 1) >= 0) companion_->Act(fds);
  return true;
}

void GroupRun::DrainAll() {
  const int64_t deadline = super_.clock_.MonotonicUs() + super_.times_.drain;
  for (size_t i = 0; i < running_.size(); ++i) {
    while ((PumpAll(i) || WaitForSink(i, deadline)) && super_.clock_.MonotonicUs() < deadline) continue;
    int64_t dropped = 0;
    for (OutputPump& pump : running_[i].pumps) {
      dropped += pump.dropped_bytes();
      pump.Close();
    }
    if (dropped == 0) continue;
    observer_.OnNote(StrCat(FormatBytes(dropped), " of output of rank ", i, " were dropped"));
  }
}

bool GroupRun::OutputEnded() const {
  std::vector<int> own;
  for (const GroupMember& member : members_) {
    if (member.stdout_file >= 0) own.push_back(member.stdout_file);
  }
  if (!own.empty() && HaveOpen(Stoppable(ChildrenOf(getpid())), own)) return false;
  return std::all_of(running_.begin(), running_.end(), [](const Running& r) {
    return std::all_of(r.pumps.begin(), r.pumps.end(), [](const OutputPump& pump) { return pump.Ended(); });
  });
}

}  // namespace overcap
