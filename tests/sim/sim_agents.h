// SPDX-License-Identifier: Apache-2.0
// Agents as the simulation runs them: they follow docs/formats/job-folder.md step by step, live on when the
// engine dies, and keep a ledger of what really ran.
#pragma once

#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "daemon/agents.h"
#include "model/agent_report.h"
#include "model/job_spec.h"
#include "mortal_files.h"
#include "sys/clock.h"
#include "sys/fake_files.h"
#include "sys/random.h"

namespace overcap {

class SimAgents : public Agents {
 public:
  SimAgents(FakeFiles& files, SeededRandom& random, Life& engine, const Clock& clock)
      : files_(files), random_(random), engine_(engine), clock_(clock) {}

  Result<ProcessIdentity> Start(const AgentStart& start) override {
    if (!engine_.Spend()) return DeadError();
    const pid_t pid = next_pid_++;
    processes_[pid] = Process{
        start, {pid, static_cast<uint64_t>(pid), boot_}, Stage::kSpawned, 0, {}, false, clock_.MonotonicUs()};
    return processes_[pid].identity;
  }
  std::string CurrentBoot() const override { return boot_; }
  bool IsAlive(const ProcessIdentity& agent) const override {
    const auto found = processes_.find(agent.pid);
    return found != processes_.end() && found->second.identity == agent &&
           found->second.stage != Stage::kGone;
  }
  int64_t RunningForUs(const ProcessIdentity& agent) const override {
    const auto found = processes_.find(agent.pid);
    return found == processes_.end() ? 0 : clock_.MonotonicUs() - found->second.started_us;
  }
  bool RanOutOfMemory(const SlotName&) const override { return false; }
  Result<void> Watch(const ProcessIdentity& agent, const AgentToken& token) override {
    if (engine_.Dead()) return DeadError();
    if (!IsAlive(agent)) {
      if (processes_.contains(agent.pid))
        ended_.push_back(token);  // a pidfd of a process that ended is readable
      else
        return Fail(ErrorCode::kNotFound, "gone");
      return {};
    }
    watched_[agent.pid] = token;
    return {};
  }
  void Signal(const ProcessIdentity& agent, int signal) override {
    if (engine_.Dead() || !IsAlive(agent)) return;
    Process& process = processes_[agent.pid];
    if (signal == SIGTERM) process.told_to_stop = true;
    if (signal == SIGKILL) Gone(process);
  }
  int KillStrays(const SlotName&) override { return 0; }
  void PrepareSpare(const SideWork&, const std::string&) override {}
  void EmptyTrash(const SideWork&) override {}

  // One step of one agent, drawn from the seed.
  void Step() {
    std::vector<pid_t> live;
    for (const auto& [pid, process] : processes_) {
      if (process.stage != Stage::kGone) live.push_back(pid);
    }
    if (!live.empty()) StepOf(processes_[live[random_.Below(live.size())]]);
  }
  void KillOne() {
    for (auto& [pid, process] : processes_) {
      if (process.stage != Stage::kGone && random_.Below(2) == 0) return Gone(process);
    }
  }
  void PowerCut() {
    for (auto& [pid, process] : processes_) process.stage = Stage::kGone;
    for (const std::string& path : counters_) LoseCounts(path);
    EngineDied();
    boot_ = StrCat("boot-", ++boots_);
  }
  void EngineDied() {
    watched_.clear();
    ended_.clear();
  }
  std::vector<AgentToken> TakeEnded() { return std::exchange(ended_, {}); }
  bool AllGone() const {
    for (const auto& [pid, process] : processes_) {
      if (process.stage != Stage::kGone) return false;
    }
    return true;
  }

  // What really ran: per job (and task) how often its command was started, and how its last run ended.
  std::map<std::pair<std::string, int>, int> runs;
  std::map<std::string, Ending> endings;
  int stopped = 0;  // agents that their users have stopped

 private:
  enum class Stage { kSpawned, kClaimed, kRunning, kStopped, kGone };
  struct Process {
    AgentStart start;
    ProcessIdentity identity;
    Stage stage = Stage::kSpawned;
    int task = -1;
    std::vector<int> retry;
    bool told_to_stop = false;
    int64_t started_us = 0;
    bool may_begin = false;  // the counter makes the start of its task durable, not the report
  };

  std::string FileOf(const Process& process, std::string_view suffix) const {
    return StrCat(process.start.job_dir, "/attempt-", process.start.attempt, "/agent-", process.start.slot,
                  suffix);
  }
  bool Report(const Process& process, const std::string& line, bool durable = false) {
    auto file = files_.OpenAppend(FileOf(process, ".jsonl"));
    return file && (*file)->Append(line) && (!durable || SyncReport(process, **file));
  }
  // The start of a task is durable before its command runs.
  bool SyncReport(const Process& process, AppendFile& file) { return file.Sync() && SyncFolders(process); }
  bool SyncFolders(const Process& process) {
    const std::string& dir = process.start.job_dir;
    const std::string attempt = StrCat(dir, "/attempt-", process.start.attempt);
    return files_.SyncFolder(attempt) && files_.SyncFolder(dir) &&
           files_.SyncFolder(dir.substr(0, dir.rfind('/')));
  }
  // Of the counter of tasks only what was synced is left: not how many were taken.
  void LoseCounts(const std::string& path) {
    auto bytes = files_.Read(path);
    if (!bytes || bytes->size() != 24) return;
    const auto taken = static_cast<unsigned char>((*bytes)[0]);
    (*bytes)[0] = static_cast<char>(random_.Below(taken + uint64_t{1}));
    (void)files_.WriteAtomic(path, *bytes, true);
  }
  void Gone(Process& process) {
    process.stage = Stage::kGone;
    if (auto watched = watched_.find(process.identity.pid); watched != watched_.end()) {
      ended_.push_back(watched->second);
      watched_.erase(watched);
    }
  }

  void StepOf(Process& process) {
    switch (process.stage) {
      case Stage::kSpawned:
        return TakeClaim(process);
      case Stage::kClaimed:
        return Begin(process);
      case Stage::kRunning:
        return Finish(process);
      case Stage::kStopped:  // by its user (kill -STOP): it does nothing any more, and holds its GPUs
      case Stage::kGone:
        return;
    }
  }

  void TakeClaim(Process& process) {
    (void)files_.MakeFolders(StrCat(process.start.job_dir, "/attempt-", process.start.attempt));
    const Claim claim{process.identity.pid, static_cast<int64_t>(process.identity.start_ticks),
                      process.identity.boot_id, "agent"};
    if (!files_.CreateExclusive(FileOf(process, ".claim"), ClaimToJson(claim))) return Gone(process);
    process.retry = process.start.retry_tasks;
    process.stage = Stage::kClaimed;
  }

  JobSpec SpecOf(const Process& process) const {
    auto text = files_.Read(process.start.job_dir + "/spec.json");
    auto spec = text ? SpecFromJson(*text) : Result<JobSpec>(Fail(text.error()));
    EXPECT_TRUE(spec) << "an agent was started without its spec";
    return spec ? *spec : JobSpec{};
  }

  // The same GPU must never be in the hands of two commands.
  void CheckGpus(const Process& process) const {
    for (const auto& [pid, other] : processes_) {
      const bool at_work = other.stage == Stage::kRunning || other.stage == Stage::kStopped;
      if (!at_work || pid == process.identity.pid) continue;
      EXPECT_TRUE(other.task >= 0 || other.start.job_id != process.start.job_id)
          << "runs twice at the same time";
      for (const int gpu : other.start.gpus) {
        for (const int own : process.start.gpus)
          EXPECT_NE(gpu, own) << other.start.job_id << " and " << process.start.job_id;
      }
    }
  }

  bool End(Process& process, JobState state, int exit_status) {
    Ending ending;
    ending.state = state;
    ending.exit_status = exit_status;
    const bool written = Report(process, EndLine(0, ending));
    if (written) endings[process.start.job_id] = ending;
    Gone(process);
    return written;
  }

  void Begin(Process& process) {
    if (process.told_to_stop) return (void)End(process, JobState::kCancelled, 143);
    const JobSpec spec = SpecOf(process);
    process.task = -1;
    if (!spec.array.empty()) {
      (void)Report(process, "");  // its name is synced before the first task
      process.task = NextTask(process, spec);
      if (process.task < 0) {
        (void)Report(process, "", true);
        return (void)End(process, JobState::kSucceeded, 0);
      }
      if (random_.Below(40) == 0) return Gone(process);  // killed between taking a task and saying so
      if (!Report(process, TaskStartLine(0, process.task, 1), !process.may_begin)) return Gone(process);
    }
    CheckGpus(process);
    ++runs[{process.start.job_id, process.task}];
    process.stage = Stage::kRunning;
  }

  int NextTask(Process& process, const JobSpec& spec) {
    process.may_begin = false;
    if (!process.retry.empty()) {
      const int task = process.retry.back();
      process.retry.pop_back();
      return task;
    }
    const std::string path = StrCat(process.start.job_dir, "/attempt-1/next-task");
    std::string bytes = files_.Read(path).value_or("");
    bytes.resize(24, '\0');
    const int next = static_cast<unsigned char>(bytes[0]);
    if (next >= spec.array.Count()) return -1;
    bytes[0] = static_cast<char>(next + 1);
    process.may_begin = random_.Below(2) == 0;
    if (process.may_begin && next >= static_cast<unsigned char>(bytes[8]))
      bytes[8] = static_cast<char>(next + 1 + static_cast<int>(random_.Below(3)));
    if (!files_.WriteAtomic(path, bytes, true) || !SyncFolders(process)) return -1;
    counters_.insert(path);
    return spec.array.IndexAt(static_cast<int>(next));
  }

  void Finish(Process& process) {
    const int64_t limit_s = process.start.time_seconds;
    const bool soon = limit_s > 0 && limit_s <= 600 && process.task < 0;  // the engine's deadline
    if (soon && random_.Below(25) == 0) {
      ++stopped;
      endings[process.start.job_id] = {JobState::kFailed, 124, 0, -1, ""};
      process.stage = Stage::kStopped;
      return;
    }
    const bool fails = random_.Below(4) == 0;
    if (process.task < 0) {
      if (process.told_to_stop) return (void)End(process, JobState::kCancelled, 143);
      return (void)End(process, fails ? JobState::kFailed : JobState::kSucceeded, fails ? 3 : 0);
    }
    Ending ending;
    ending.state = fails ? JobState::kFailed : JobState::kSucceeded;
    ending.exit_status = fails ? 3 : 0;
    if (!Report(process, TaskEndLine(0, process.task, 1, ending))) return Gone(process);
    process.stage = Stage::kClaimed;
  }

  FakeFiles& files_;
  SeededRandom& random_;
  Life& engine_;
  const Clock& clock_;
  std::map<pid_t, Process> processes_;
  std::map<pid_t, AgentToken> watched_;
  std::vector<AgentToken> ended_;
  std::set<std::string> counters_;
  pid_t next_pid_ = 100;
  int boots_ = 0;
  std::string boot_ = "boot-0";
};

}  // namespace overcap
