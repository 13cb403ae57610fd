// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/runner.h"

namespace overcap::node_link {

// How patient the head is, beside the attempt's own times, in microseconds.
struct HeadTimes {
  int64_t margin = 5'000'000;      // after the grace time, for hosts to say that nothing is left
  int64_t stacks = 8'000'000;      // for the stacks of all ranks
  int64_t settle = 1'000'000;      // for what is under way after a process ended or a link closed
  int64_t child_exit = 5'000'000;  // for a launcher whose ranks are all gone
  int64_t child_kill = 1'000'000;  // between TERM and KILL of such a one
};

// What is to be done in an attempt on many hosts, decided from what has happened, in order of arrival. Pure:
// it sends nothing and asks no clock. Times are monotonic microseconds.
class HeadState {
 public:
  enum class Order {
    kStart,         // all hosts have said hello
    kStacks,        // ask all for their stacks
    kWriteStacks,   // they are in, or the time is over
    kStop,          // tell all to stop, with StopGraceUs(); end children of hosts that have not said hello
    kGiveUp,        // drop every link, kill every child
    kTermChildren,  // all ranks are gone, they are not
    kKillChildren,
  };
  enum class Host { kSilent, kReady, kRunning, kFinished, kFailed };

  HeadState(const Attempt& attempt, int64_t now_us, HeadTimes times = {});

  void OnHello(int host, int64_t now_us);
  void OnOutput(int64_t now_us) { last_output_us_ = now_us; }
  void OnBegun(int rank);
  void OnEnded(const RankFailure& how, int64_t now_us);  // of a rank, well or not
  void OnStack(int rank, std::string text, int64_t now_us);
  void OnNothingLeft(int host, int64_t now_us);
  void OnLost(int host, const std::string& why, int64_t now_us);  // link or process gone, and no way back
  void OnClosing(int host, int64_t now_us);                       // its link closed; OnLost may say why soon
  // Of the one behind all hosts; `words` say how, for people. Its status counts for ranks whose own is not
  // known.
  void OnCommonChildEnd(const ProcessEnd& end, const std::string& words, int64_t now_us);
  void OnChildren(int count, int64_t now_us);  // so many are left
  void OnSignal(int signal, int64_t now_us);
  void CannotRun(const Error& error, int64_t now_us);
  void AllowUntil(int host, int64_t until_us);
  void OnTime(int64_t now_us);  // whatever the clock asks for
  int64_t NextUs() const;       // when OnTime wants to be called; INT64_MAX: never

  std::vector<Order> TakeOrders();
  int64_t StopGraceUs() const { return stop_grace_us_; }
  bool Interrupted() const;  // by Ctrl-C
  bool Stopping() const { return stopping_; }
  bool Done() const;
  Host Of(int host) const { return hosts_[host].state; }
  std::string StacksText() const;
  AttemptEnd& End() { return end_; }  // complete when Done()

 private:
  struct HostState {
    Host state = Host::kSilent;
    int64_t hello_until_us;
    int64_t lost_at_us;  // its link has closed: then it has failed
  };
  enum class RankState { kUnknown, kBegun, kEnded };
  struct ChildEnd {
    ProcessEnd end;
    std::string words;
    int64_t judge_at_us;  // what is under way from the hosts comes before that
    int64_t stop_at_us;
  };

  bool Blame(AttemptEnd::Cause cause);  // false: something else was to blame before
  void BeginStop(int64_t grace_us, int64_t now_us);
  void Lose(int host);
  void CheckHellos(int64_t now_us);
  void CheckLost(int64_t now_us);
  void CheckIdle(int64_t now_us);
  void CheckStacks(int64_t now_us);
  void CheckStop(int64_t now_us);
  void CheckCommonChild(int64_t now_us);
  void JudgeCommonChild(int64_t now_us);
  void CheckChildren(int64_t now_us);
  bool AllSettled() const;
  bool StacksComplete() const;
  std::string NamesOf(const std::vector<int>& hosts) const;  // "host 'a'", "hosts 'a', 'b'"

  const Attempt& attempt_;
  HeadTimes times_;
  std::vector<HostState> hosts_;
  std::vector<RankState> ranks_;
  std::map<int, std::string> stacks_;
  std::vector<Order> orders_;
  AttemptEnd end_;
  std::optional<RankFailure> first_untold_;  // the first that ended in a way that nobody told
  std::optional<ChildEnd> common_child_end_;
  bool blamed_ = false;  // end_ says whom
  bool started_ = false, stopping_ = false, gave_up_ = false;
  int children_ = 0, children_step_ = 0;
  int64_t last_output_us_ = 0;
  int64_t stacks_until_us_;  // kNever: not asked for, or done with
  int64_t stop_until_us_;
  int64_t second_word_us_;  // from then on another INT means "at once"; kNever: there was no signal
  int64_t stop_grace_us_ = 0;
  int64_t children_until_us_;  // next step against children that stay
};

}  // namespace overcap::node_link
