// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elastic/messages.h"
#include "elastic/record.h"
#include "elastic/times.h"

namespace overcap::elastic {

enum class Grow { kNow, kAtCheckpoint, kNo };

struct LeaderConfig {
  ElasticTimes times;
  int min_nodes = 1, max_nodes = 1;
  int max_restarts = 0;
  Grow grow = Grow::kAtCheckpoint;
  int64_t join_timeout_us = 600'000'000;
  int64_t last_call_us = 1'000'000;
  std::string version;
  std::string agent;                                       // the leader's own
  std::vector<std::pair<std::string, std::string>> terms;  // as the leader's own agent has them
};

// What a leader is to say and to keep, decided from what has come, in order of arrival
// (docs/formats/elastic.md). Pure: it sends nothing and asks no clock. Times are monotonic microseconds of
// the leader. Whoever owns it calls OnTime() after each batch of events, then takes what is to be done.
class LeaderState {
 public:
  // `record` as it was found; `quiet_us`: until then members of an earlier leader may still have ranks.
  LeaderState(LeaderConfig config, ElasticRecord record, int64_t term, int64_t quiet_us, int64_t now_us);

  void OnRight(int64_t until_us) { right_until_us_ = until_us; }  // to lead, by our clock
  void OnJoin(int connection, JoinRequest join, int64_t now_us);
  void OnReport(int connection, MemberReport report, int64_t now_us);
  void OnBeat(int connection, const MemberBeat& beat, int64_t now_us);
  void OnClosed(int connection, int64_t now_us);
  void OnStored(const ElasticRecord& record, int64_t now_us);  // what TakeStore() gave is kept
  void OnTime(int64_t now_us);
  int64_t NextUs() const;  // when OnTime wants to be called; kNever: not by itself

  std::vector<std::pair<int, ToMember>> TakeMessages() { return std::exchange(messages_, {}); }
  std::vector<int> TakeDrops() { return std::exchange(drops_, {}); }  // to close when their messages are out
  std::optional<ElasticRecord> TakeStore() { return std::exchange(store_, {}); }

  bool Ended() const { return phase_ == Phase::kEnded; }
  bool Settled() const { return phase_ == Phase::kRunning; }  // a group runs, and nothing is to change
  bool AllGone() const { return members_.empty(); }
  int64_t epoch() const { return record_.epoch; }
  int64_t term() const { return term_; }
  size_t Members() const { return members_.size(); }

 private:
  enum class Phase { kGather, kStoring, kRunning, kStopping, kEnding, kEnded };
  struct Member {
    JoinRequest join;
    MemberReport report;
    int connection = -1;    // -1: it has none now
    int64_t joined_us = 0;  // the order of the lobby
    int64_t heard_us = 0;   // when its last word came
    int64_t closed_us = kNever;
    bool reported = false;  // it has said how it is on this connection
    bool in_group = false;
    bool gone = false;    // of the group: it has no right any more, or has left
    int group_rank = -1;  // of the last group it was in
    int first_rank = 0;
  };
  using Members_t = std::map<std::string, std::unique_ptr<Member>>;

  Member* Of(int connection);
  std::optional<Refusal> Judge(const JoinRequest& join) const;
  bool MayHaveRanks(const Member& member) const;  // of the group that is stopping
  bool Silent(const Member& member, int64_t now_us) const;
  void Decide(int64_t now_us);
  void Sweep(int64_t now_us);
  void CheckGather(int64_t now_us);
  void Form(std::vector<Member*> chosen, int64_t now_us);
  void CheckRunning(int64_t now_us);
  void RefuseSurplus();
  void CheckStopping(int64_t now_us);
  void BeginStop(std::string why, bool warn, bool stacks, int64_t now_us);
  void Restart(int64_t now_us);
  void End(int status, std::string message, std::string traceback);
  void FailGathering(int present);
  void NameSlowest();
  std::vector<Member*> Eligible();
  Order OrderFor(const Member& member) const;
  OrderRun RunOrder(const Member& member) const;
  void Answer(Member* member, int64_t now_us);
  void AnswerAll(int64_t now_us);
  int64_t RightLeft(int64_t now_us) const;
  std::string NameOf(const Member& member) const;
  bool GrowthWaits() const;

  const LeaderConfig config_;
  ElasticRecord record_;
  const int64_t term_;
  Phase phase_ = Phase::kGather;
  int64_t right_until_us_ = kNever;
  int64_t quiet_us_;
  int64_t gather_since_us_, enough_since_us_ = kNever;
  int64_t sweep_us_ = kNever;  // the next time at which a member can have become silent
  bool changed_ = true;        // since the last Decide()
  bool first_group_ = true;    // of this term
  int64_t warned_epoch_ = -1;  // a member of it was warned by its scheduler
  bool grows_ = false;         // somebody waits to be taken into the group, and the members know it
  Members_t members_;
  std::map<int, Member*> connections_;

  // The group that runs, or ran last.
  std::vector<std::string> group_;  // agents by group rank
  std::vector<std::string> names_;  // their hosts
  OrderRun plan_;                   // what all have in common
  OrderStop stop_;
  std::optional<ElasticFailure> failure_;  // the first
  std::string failure_host_;
  std::vector<std::string> lost_;  // hosts
  int64_t last_checkpoint_ = -1, last_step_ = -1;
  OrderEnd end_;

  std::vector<std::pair<int, ToMember>> messages_;
  std::vector<int> drops_;
  std::optional<ElasticRecord> store_;
};

// "rank 3 on 'host2' failed first: exit status 7", with what the rank has told.
std::string FailureLine(const ElasticFailure& failure, const std::string& host);

// What an agent that differs is told: "its command line is 'a', here it is 'b'"; "" when nothing does.
std::string TermsDifference(const std::vector<std::pair<std::string, std::string>>& theirs,
                            const std::vector<std::pair<std::string, std::string>>& ours);
std::string TermsHash(const std::vector<std::pair<std::string, std::string>>& terms);

}  // namespace overcap::elastic
