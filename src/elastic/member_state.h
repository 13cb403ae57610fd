// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "elastic/messages.h"
#include "elastic/times.h"

namespace overcap::elastic {

// What an agent is to do with its ranks.
struct StartRanks {
  OrderRun plan;
};
struct WarnRanks {    // the warning; OnWarned() hears whether a process of theirs handles it
  bool stops = true;  // they are to end; else they may go on
};
struct StackRanks {};  // keep the stack of each
struct StopRanks {};   // TERM, and KILL after the grace time
struct KillRanks {     // now
  std::string why;
};
struct EndAgent {
  OrderEnd how;
};
using MemberAction = std::variant<StartRanks, WarnRanks, StackRanks, StopRanks, KillRanks, EndAgent>;

// What an agent does and tells its leader, decided from what has happened (docs/formats/elastic.md). Pure.
// Times are monotonic microseconds of this agent. After each event: TakeMessages() go to the leader in their
// order, TakeActions() are carried out.
class MemberState {
 public:
  // warn_us: between the warning and TERM.
  MemberState(ElasticTimes times, int64_t warn_us) : times_(times), warn_us_(warn_us) {}

  void OnConnected(int64_t now_us);  // to a leader who knows the key; the join was sent
  void OnClosed();
  void OnAnswer(const LeaderAnswer& answer, int64_t now_us);
  void OnNod(const LeaderNod& nod, int64_t now_us);

  void OnWarned(bool heard, int64_t now_us);
  void OnWarning(int64_t now_us);  // this agent was warned, and has warned its ranks: the others hear of it
  void OnRankFailed(ElasticFailure failure, int64_t now_us);  // the first of this epoch
  void OnRanksEnded(bool well, int64_t now_us);               // nothing is left of them
  void OnStep(int64_t step);                        // that a rank has reached; told with the next report
  void OnSlowest(int rank, int64_t step);           // of the ranks here; as above
  bool OnCheckpoint(int64_t step, int64_t now_us);  // true: the rank shall yield
  void OnPort(int port) { report_.port = port; }    // held for the next epoch
  void OnLeave(int64_t now_us, bool interrupted = false);  // TERM to this agent, or Ctrl-C: no warning then
  void OnTime(int64_t now_us);
  int64_t NextUs() const;  // when OnTime wants to be called

  std::vector<ToLeader> TakeMessages() { return std::exchange(messages_, {}); }
  std::vector<MemberAction> TakeActions() { return std::exchange(actions_, {}); }

  const MemberReport& report() const { return report_; }
  bool Running() const { return report_.state == RanksState::kRunning; }
  bool Leaving() const { return report_.leaving; }
  bool Connected() const { return connected_; }
  int64_t RightUntilUs() const { return until_us_; }
  int64_t KillAtUs() const { return until_us_ - times_.Guard(); }  // while ranks run
  int64_t term() const { return term_; }
  const std::string& WaitingFor() const { return waiting_for_; }

 private:
  void Tell(int64_t now_us);  // all of the report, anew
  void Extend(int64_t echo_us, int64_t right_us, int64_t now_us);
  void Obey(const OrderWait& order, int64_t now_us);
  void Obey(const OrderRun& order, int64_t now_us);
  void Obey(const OrderStop& order, int64_t now_us);
  void Obey(const OrderEnd& order, int64_t now_us);
  void Stop(bool warn, int64_t now_us);
  void Kill(std::string why);
  void LeaveAlone(int64_t now_us);

  const ElasticTimes times_;
  const int64_t warn_us_;
  MemberReport report_;
  bool connected_ = false;
  int64_t term_ = 0;
  int64_t until_us_ = 0;         // our right
  int64_t last_sent_us_ = -1;    // on this connection
  int64_t report_sent_us_ = -1;  // of the last whole report
  bool report_heard_ = false;    // an answer to it has come
  int64_t next_beat_us_ = kNever;
  int64_t term_at_us_ = kNever;  // TERM follows the warning then
  bool stopping_ = false, killed_ = false, stacked_ = false;
  bool grows_ = false, left_ = false, interrupted_ = false;
  std::optional<OrderEnd> end_;  // when nothing is left
  std::string waiting_for_;
  std::vector<ToLeader> messages_;
  std::vector<MemberAction> actions_;
};

}  // namespace overcap::elastic
