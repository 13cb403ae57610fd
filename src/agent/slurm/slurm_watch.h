// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/cluster_watch.h"
#include "agent/report_file.h"
#include "agent/side_tool.h"
#include "agent/slurm/slurm_start.h"
#include "agent/slurm/slurm_verdict.h"
#include "launch/compose/launch_command.h"
#include "model/job_spec.h"
#include "sys/clock.h"

namespace overcap {

struct SlurmWatchInputs {
  const JobSpec& spec;
  const SlurmStart& start;
  std::string job_dir;
  int64_t grace_us;                // between TERM and KILL of the ranks
  std::vector<std::string> tools;  // variables of Slurm's programs
  const Clock& clock;
  LaunchCommand listener = {};  // a step that hears what only steps are told; no words: none
};

// Looks after a job of Slurm while its ranks run: a sign of life every 30 s, somebody who wants it to end,
// the time limit; and asks Slurm, beside, what a signal means.
class SlurmWatch : public ClusterWatch {
 public:
  explicit SlurmWatch(SlurmWatchInputs inputs);

  // Before the ranks. `tells`: whether OnSignal() will; else the supervisor is asked. The report shows that
  // we live. `next`: the claim of the start after this one, whose ranks must not run beside ours.
  void Begin(Supervisor* supervisor, bool tells, ReportFile* report, std::string next = {});

  int64_t Prepare(std::vector<pollfd>* fds) override;
  bool Act(std::span<const pollfd> fds) override;
  void OnSignal(int signal) override;
  std::string JobMark() const override;
  bool IsOwnHelper(pid_t pid) const override {
    return (question_ && question_->pid() == pid) || (listener_ && listener_->pid() == pid);
  }

  // After the ranks: all that is known of why they ended. Waits a few seconds for Slurm's answer, if that is
  // needed.
  StopEvidence Collect(const Ending& ranks);
  bool told() const { return told_; }  // that it must end

 private:
  int64_t StopUs() const;
  void LookAtSignals();
  void LookAtFiles();
  void LookForNext();
  void Ask();
  void TakeAnswer();
  void Listen();
  void Hear();
  std::optional<std::string> ReadCancel() const;

  SlurmWatchInputs in_;
  const int64_t begin_us_;  // since 1970
  Supervisor* supervisor_ = nullptr;
  bool tells_ = false;
  ReportFile* report_ = nullptr;
  std::string next_;
  int64_t next_look_us_ = 0;  // monotonic
  int64_t ask_at_us_;         // monotonic; for when the time limit comes
  int64_t listen_at_us_;      // monotonic
  int warnings_ = 0;
  bool told_ = false, heard_ = false, warned_ = false, before_limit_ = false, cancel_ = false,
       replaced_ = false;
  std::optional<SideTool> question_, listener_;
  std::optional<SlurmJobFacts> facts_;  // the latest answer
  std::optional<SlurmJobFacts> times_;  // the latest that told when the time is over
  int64_t asked_us_ = 0;                // monotonic; for facts_
};

}  // namespace overcap
