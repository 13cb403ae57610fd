// SPDX-License-Identifier: Apache-2.0
// One agent of an elastic job: takes part in the rendezvous, leads when it falls to it, and runs this node's
// ranks as its leader orders. Decides nothing itself: elastic/leader_state and elastic/member_state do.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/elastic/elastic_options.h"
#include "control/elastic/event_log.h"
#include "control/elastic/rank_socket.h"
#include "control/elastic/right_guard.h"
#include "control/launch.h"
#include "control/launch_folder.h"
#include "elastic/leader_state.h"
#include "elastic/link/hub.h"
#include "elastic/link/member_link.h"
#include "elastic/listen.h"
#include "elastic/member_state.h"
#include "elastic/rendezvous.h"
#include "sys/supervisor.h"

namespace overcap {

// How the agent ended.
struct ElasticEnd {
  int status = 0;
  std::string message, traceback;  // message "": all went well
  bool rank_failed = false;        // the job failed because of a rank
  std::vector<AttemptRecord> attempts;
};

class ElasticAgent : public GroupObserver, public GroupCompanion {
 public:
  struct Parts {
    const ElasticOptions& options;
    const LaunchWorld& world;
    LaunchVoice& voice;
    const LaunchFolder& folder;
    Supervisor& supervisor;
    RightGuard& guard;
    elastic::Rendezvous& rendezvous;
    RankSocket& socket;
    std::function<bool(pid_t)> leave_alone;
    std::vector<std::string> env;
    std::string name, host;  // name: unique among the agents
  };
  explicit ElasticAgent(Parts parts);
  ~ElasticAgent() override;

  // To the end of the job, or of this agent's part in it. An error means that it could not take part.
  Result<ElasticEnd> Run();

  void OnStarted(const std::vector<pid_t>& pids) override;
  void OnMemberEnd(int member, const ProcessEnd& end) override;
  void OnNote(const std::string& text) override { parts_.voice.Warn(text); }
  void OnOutput(int member, int stream, int64_t bytes) override;
  int64_t Prepare(std::vector<pollfd>* fds) override;
  bool Act(std::span<const pollfd> fds) override;
  int64_t GraceUs() const override { return grace_us_; }
  int StopSignal() const override;

 private:
  static constexpr int64_t kTroubleUs = 15'000'000;  // a rendezvous that was never reached

  struct RankSigns {
    int64_t alive_us = 0, step = -1;
    bool beats = false;  // it calls overcap.heartbeat()
  };

  void Pump();
  void FollowStanding();
  void BeginLeading(const elastic::Standing& standing);
  void StepDown();
  void PumpLeader();
  void PumpLink();
  void BeginLink(const elastic::LeaderContact& leader);
  bool Looks() const;  // whether another may lead by now, while the one that was told does not answer
  void Opened();
  void Obey(const elastic::ToMember& message);
  void CheckReach();
  void CheckDenial();
  void CheckHang();
  bool TakeWord(const RankSocket::Word& word);
  void Settle();
  void Carry(const elastic::MemberAction& action);
  void Stop(std::string error_message, ErrorCode code, std::string hint = "");
  std::vector<RankView> Views() const;  // of the epoch that begins
  void RunEpoch();
  void ReportFailure(int member, const ProcessEnd& end, const std::string& reason);
  void KeepStacksNow();
  void NoteForGroup(const char* event, const GroupEvents::Fields& fields);
  void NoteEpoch(const elastic::OrderRun& plan);
  void FinishRecord(const GroupEnd& end);
  bool Finished() const;
  void HoldNewPort();
  elastic::JoinRequest Join() const;
  elastic::LeaderConfig Config() const;
  int64_t NowUs() const { return parts_.world.clock.MonotonicUs(); }

  Parts parts_;
  const elastic::ElasticTimes times_;
  GroupEvents events_;
  elastic::MemberState member_;
  elastic::MemberLink link_;
  std::optional<elastic::LeaderState> leader_;
  std::unique_ptr<elastic::Hub> hub_;
  elastic::HeldPort port_;
  std::vector<std::pair<std::string, std::string>> terms_;

  std::optional<elastic::OrderRun> start_;  // to be run when nothing else is
  bool stop_ = false;                       // the ranks that run
  int64_t grace_us_ = -1;
  std::optional<elastic::OrderEnd> end_;
  std::optional<Error> error_;
  int64_t linger_until_us_ = elastic::kNever;
  bool ever_joined_ = false, leave_noted_ = false;
  int64_t trouble_since_us_ = elastic::kNever, alone_since_us_;
  int64_t heard_us_ = 0;                       // of the leader
  int64_t look_us_ = 0;                        // when Looks() is asked for again
  int warnings_ = 0;                           // USR1 that have come
  int64_t denied_since_us_ = elastic::kNever;  // what answers has another key
  std::string last_problem_;

  // The epoch that runs.
  std::optional<RankLogs> logs_;
  elastic::OrderRun plan_;
  std::string log_folder_, stop_why_;
  std::vector<pid_t> pids_;
  std::vector<RankSigns> signs_;
  int64_t output_us_ = 0, oom_kills_ = 0;
  bool started_ = false, stopping_ = false;
  std::vector<AttemptRecord> records_;
};

}  // namespace overcap
