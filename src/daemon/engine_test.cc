// SPDX-License-Identifier: Apache-2.0
// What the engine keeps to itself: limits that bind users who change their own files, and full disks.
#include "daemon/engine.h"

#include <csignal>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "base/text.h"
#include "model/agent_report.h"
#include "model/job_spec.h"
#include "sys/fake_files.h"

namespace overcap {
namespace {

constexpr char kRoot[] = "/state/overcap";
constexpr char kId[] = "ann_1700000000_00000001";
constexpr int64_t kSecondUs = 1'000'000;

// Agents that do what the test says.
class ScriptedAgents : public Agents {
 public:
  explicit ScriptedAgents(const Clock& clock) : clock_(clock) {}

  Result<ProcessIdentity> Start(const AgentStart& start) override {
    started.push_back(start);
    const ProcessIdentity agent{next_pid_++, 1, "boot"};
    alive.insert(agent.pid);
    since_[agent.pid] = clock_.MonotonicUs();
    return agent;
  }
  std::string CurrentBoot() const override { return "boot"; }
  std::string CurrentHost() const override { return host; }
  bool IsAlive(const ProcessIdentity& agent) const override { return alive.contains(agent.pid); }
  int64_t RunningForUs(const ProcessIdentity& agent) const override {
    return clock_.MonotonicUs() - since_.at(agent.pid);
  }
  Result<void> Watch(const ProcessIdentity& agent, const AgentToken& token) override {
    watched[agent.pid] = token;
    return {};
  }
  void Signal(const ProcessIdentity& agent, int signal) override { signals.emplace_back(agent.pid, signal); }
  int KillStrays(const SlotName& slot) override {
    swept.push_back(slot.job_id);
    return 0;
  }
  bool RanOutOfMemory(const SlotName&) const override { return out_of_memory; }
  void PrepareSpare(const SideWork&, const std::string&) override {}
  void EmptyTrash(const SideWork& work) override { emptied.push_back(work); }

  std::vector<AgentStart> started;
  std::set<pid_t> alive;
  std::map<pid_t, AgentToken> watched;
  std::vector<std::pair<pid_t, int>> signals;
  std::vector<std::string> swept;
  std::vector<SideWork> emptied;
  bool out_of_memory = false;
  std::string host = "gpu1/5d";

 private:
  const Clock& clock_;
  pid_t next_pid_ = 100;
  std::map<pid_t, int64_t> since_;
};

// A disk on which no name can be moved: it has no room for the folder's entry.
class FixedNames : public Files {
 public:
  explicit FixedNames(Files& files) : files_(files) {}
  Result<std::string> Read(const std::string& path) const override { return files_.Read(path); }
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override {
    if (path == unreadable) return Fail(ErrorCode::kInternal, StrCat("cannot read '", path, "'"));
    return files_.ReadRange(path, offset, limit);
  }
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override {
    return files_.OpenAppend(path);
  }
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override {
    return files_.WriteAtomic(path, data, durable);
  }
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override {
    return files_.CreateExclusive(path, data);
  }
  Result<void> MakeFolders(const std::string& path) override { return files_.MakeFolders(path); }
  Result<void> Rename(const std::string& from, const std::string& to) override {
    if (fixed) return Fail(ErrorCode::kUnavailable, StrCat("cannot rename '", from, "': no space left"));
    return files_.Rename(from, to);
  }
  Result<void> SyncFolder(const std::string& path) override { return files_.SyncFolder(path); }
  Result<void> Remove(const std::string& path) override { return files_.Remove(path); }
  Result<void> RemoveTree(const std::string& path) override { return files_.RemoveTree(path); }
  bool Exists(const std::string& path) const override { return files_.Exists(path); }
  Result<std::vector<std::string>> List(const std::string& path) const override { return files_.List(path); }

  bool fixed = false;
  std::string unreadable;

 private:
  Files& files_;
};

Machine FourGpus() {
  Machine machine;
  machine.cpus = 4;
  machine.mem_bytes = int64_t{1} << 34;
  for (int i = 0; i < 4; ++i) machine.gpus.push_back({i, "a40", "", 0});
  return machine;
}

JobSpec Plain(const std::string& id = kId) {
  JobSpec spec;
  spec.id = id;
  spec.user = "ann";
  spec.cluster = "local";
  spec.command = {"train"};
  spec.workdir = "/tmp";
  spec.resources.gpus = 1;
  return spec;
}

class EngineTest : public testing::Test {
 protected:
  EngineTest() { EXPECT_TRUE(files_.MakeFolders("/state")); }

  void Open() {
    engine_ = std::make_unique<Engine>(clock_, names_, agents_, kRoot, FourGpus());
    engine_->SetCancelPatience(70 * kSecondUs, 10 * kSecondUs);
    const auto opened = engine_->Open();
    ASSERT_TRUE(opened) << opened.error().message;
    Turn();
  }
  void Turn() {
    const auto turned = engine_->Turn();
    ASSERT_TRUE(turned) << turned.error().message;
  }
  void Submit(const JobSpec& spec) {
    const auto submitted = engine_->Submit(spec);
    ASSERT_TRUE(submitted) << submitted.error().message;
    Turn();
  }
  void Pass(int64_t seconds) {
    clock_.Advance(seconds * kSecondUs);
    Turn();
  }
  const Job& TheJob(const std::string& id = kId) { return *engine_->table().Find(id); }

  std::string ClaimOf(const AgentStart& start) {
    return start.claim.empty() ? StrCat(start.job_dir, "/attempt-", start.attempt, "/agent-0.claim")
                               : start.claim;
  }
  // The agent that was started last has claimed its slot and runs.
  pid_t Claim() {
    const AgentStart& start = agents_.started.back();
    const pid_t pid = agents_.watched.rbegin()->first;
    EXPECT_TRUE(files_.MakeFolders(ClaimOf(start).substr(0, ClaimOf(start).rfind('/'))));
    EXPECT_TRUE(files_.CreateExclusive(ClaimOf(start), ClaimToJson({pid, 1, "boot", "agent"})));
    return pid;
  }
  void Report(const std::string& lines) {
    const AgentStart& start = agents_.started.back();
    auto file = files_.OpenAppend(StrCat(start.job_dir, "/attempt-", start.attempt, "/agent-0.jsonl"));
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Append(lines));
  }
  void Die(pid_t pid) {
    agents_.alive.erase(pid);
    engine_->AgentEnded(agents_.watched.at(pid));
    Turn();
  }

  FakeClock clock_;
  FakeFiles files_{1};
  FixedNames names_{files_};
  ScriptedAgents agents_{clock_};
  std::unique_ptr<Engine> engine_;
};

// ---- limits

TEST_F(EngineTest, AnAgentIsToldTheLimitsOfTheRecordWhateverTheFolderSays) {
  Open();
  JobSpec spec = Plain();
  spec.hold = true;
  spec.resources.time_seconds = 3;
  spec.resources.mem_bytes = 1000;
  Submit(spec);
  spec.resources.time_seconds = spec.resources.mem_bytes = 0;
  ASSERT_TRUE(files_.WriteAtomic(StrCat(kRoot, "/jobs/", kId, "/spec.json"), SpecToJson(spec), false));
  ASSERT_TRUE(engine_->Release(kId));
  Turn();
  ASSERT_EQ(agents_.started.size(), 1u);
  EXPECT_EQ(agents_.started[0].time_seconds, 3);
  EXPECT_EQ(agents_.started[0].memory_bytes, 1000);
}

TEST_F(EngineTest, AnAgentThatOutlivesItsTimeLimitIsKilledAndTheJobHasFailed) {
  Open();
  JobSpec spec = Plain();
  spec.resources.time_seconds = 100;
  Submit(spec);
  const pid_t agent = Claim();
  Pass(159);
  EXPECT_TRUE(agents_.signals.empty()) << "the limit, and a minute in which its agent ends it";
  Pass(2);
  ASSERT_EQ(agents_.signals, (std::vector<std::pair<pid_t, int>>{{agent, SIGTERM}}));
  Pass(9);
  EXPECT_EQ(agents_.signals.size(), 1u) << "the grace of the ranks";
  Pass(2);
  ASSERT_EQ(agents_.signals, (std::vector<std::pair<pid_t, int>>{{agent, SIGTERM}, {agent, SIGKILL}}));
  Report(EndLine(clock_.WallUs(), {JobState::kSucceeded, 0, 0, -1, ""}));  // as its user has written it
  Die(agent);
  EXPECT_EQ(TheJob().state, JobState::kFailed);
  EXPECT_EQ(TheJob().ending.exit_status, 124);
  EXPECT_NE(TheJob().ending.reason.find("time limit of 1m40s reached"), std::string::npos)
      << TheJob().ending.reason;
  EXPECT_EQ(agents_.swept, std::vector<std::string>{kId});
}

TEST_F(EngineTest, AnEngineThatIsStartedAgainCountsTheTimeFromTheAgentsStart) {
  Open();
  JobSpec spec = Plain();
  spec.resources.time_seconds = 100;
  Submit(spec);
  const pid_t agent = Claim();
  Pass(100);
  clock_.SetWall(clock_.WallUs() + int64_t{1000} * 86400 * kSecondUs);  // somebody has set the clock
  Open();
  EXPECT_TRUE(agents_.signals.empty());
  Pass(59);
  EXPECT_TRUE(agents_.signals.empty());
  Pass(2);
  EXPECT_EQ(agents_.signals, (std::vector<std::pair<pid_t, int>>{{agent, SIGTERM}}));
}

TEST_F(EngineTest, ASlotOfAnArrayMayTakeAsLongAsAllOfItsTasks) {
  Open();
  JobSpec spec = Plain();
  spec.array = *ParseArraySpec("0-9%1");
  spec.resources.time_seconds = 100;
  Submit(spec);
  Claim();
  Pass(10 * 170 - 10 - 1);
  EXPECT_TRUE(agents_.signals.empty());
  Pass(2);
  EXPECT_EQ(agents_.signals.size(), 1u);
}

TEST_F(EngineTest, AJobWithoutATimeLimitHasNoDeadline) {
  Open();
  Submit(Plain());
  Claim();
  Pass(int64_t{400} * 86400);
  EXPECT_TRUE(agents_.signals.empty());
}

TEST_F(EngineTest, WhatTheKernelKilledForItsMemoryHasFailedWithThatReason) {
  Open();
  JobSpec spec = Plain();
  spec.owner.uid = spec.owner.gid = 1001;
  spec.resources.mem_bytes = 1 << 20;
  Submit(spec);
  const pid_t agent = Claim();
  agents_.out_of_memory = true;
  Die(agent);
  EXPECT_EQ(TheJob().state, JobState::kFailed);
  EXPECT_EQ(TheJob().ending.exit_status, 137);
  EXPECT_EQ(TheJob().ending.reason, "memory limit reached");
}

TEST_F(EngineTest, WhatAUserUsedIsCountedByTheEnginesClock) {
  Open();
  JobSpec spec = Plain();
  spec.owner.uid = spec.owner.gid = 1001;
  Submit(spec);
  const pid_t agent = Claim();
  const int64_t started_us = TheJob().progress.started_us;
  Report(EndLine(started_us + 1000, {JobState::kSucceeded, 0, 0, -1, ""}));
  Pass(8);
  Die(agent);
  EXPECT_EQ(TheJob().state, JobState::kSucceeded);
  EXPECT_EQ(TheJob().progress.ended_us - started_us, 8 * kSecondUs);
}

TEST_F(EngineTest, AReportIsBelievedForTheTimeWhenNoEngineRanAndNotBefore) {
  for (const int64_t reported_s : {1, 20}) {
    const std::string id = StrCat("ann_1700000000_0000000", reported_s == 1 ? 1 : 2);
    Open();
    JobSpec spec = Plain(id);
    spec.owner.uid = spec.owner.gid = 1001;
    Submit(spec);
    const pid_t agent = Claim();
    const int64_t started_us = TheJob(id).progress.started_us;
    Pass(10);
    JobSpec other = Plain(StrCat("ann_1700000000_0000001", reported_s == 1 ? 1 : 2));
    other.hold = true;
    Submit(other);  // the last that the engine wrote before it was killed
    clock_.Advance(20 * kSecondUs);
    Report(EndLine(started_us + reported_s * kSecondUs, {JobState::kSucceeded, 0, 0, -1, ""}));
    agents_.alive.erase(agent);
    Open();
    EXPECT_EQ(TheJob(id).progress.ended_us - started_us, std::max<int64_t>(10, reported_s) * kSecondUs);
  }
}

TEST_F(EngineTest, AUsersJobGoesBackToTheQueueAtItsTimeLimitOnlyWhereThatWasAskedFor) {
  const std::string ids[] = {"ann_1700000000_00000001", "ann_1700000000_00000002"};
  Open();
  for (const bool asked : {true, false}) {
    JobSpec spec = Plain(ids[asked ? 0 : 1]);
    spec.owner.uid = spec.owner.gid = 1001;
    spec.resources.time_seconds = 100;
    spec.requeue_on_timeout = asked;
    Submit(spec);
    const pid_t agent = Claim();
    Report(EndLine(clock_.WallUs(), {JobState::kPreempted, 143, SIGTERM, -1, "time limit of 1m40s reached"}));
    Die(agent);
    if (asked) Claim();
  }
  EXPECT_EQ(TheJob(ids[0]).progress.attempt, 2);
  EXPECT_EQ(TheJob(ids[0]).state, JobState::kRunning);
  EXPECT_EQ(TheJob(ids[1]).state, JobState::kLost);
}

TEST_F(EngineTest, AUsersScriptRequeuesItselfOnlyWhereItsJobMayBeRequeued) {
  const std::string ids[] = {"ann_1700000000_00000001", "ann_1700000000_00000002"};
  Open();
  for (const bool may : {true, false}) {
    JobSpec spec = Plain(ids[may ? 0 : 1]);
    spec.owner.uid = spec.owner.gid = 1001;
    spec.batch = true;
    spec.requeue = may;
    Submit(spec);
    const pid_t agent = Claim();
    Report(EndLine(clock_.WallUs(), {JobState::kPreempted, 0, 0, -1, "requeued by itself"}));
    Die(agent);
    if (may) Claim();
  }
  EXPECT_EQ(TheJob(ids[0]).progress.attempt, 2);
  EXPECT_EQ(TheJob(ids[0]).state, JobState::kRunning);
  EXPECT_EQ(TheJob(ids[1]).state, JobState::kLost);
}

TEST_F(EngineTest, AJobThatFailsOrRequeuesItselfAtOnceIsRestartedEverLater) {
  Open();
  for (const JobState state : {JobState::kFailed, JobState::kPreempted}) {
    agents_.started.clear();
    JobSpec spec = Plain(StrCat("ann_1700000000_0000000", static_cast<int>(state)));
    spec.max_restarts = 1'000'000;
    Submit(spec);
    for (int second = 0; second < 600; ++second) {
      while (!agents_.alive.empty()) {
        const pid_t agent = Claim();
        Report(EndLine(clock_.WallUs(), {state, 1, 0, 0, ""}));
        Die(agent);
      }
      Pass(1);
    }
    EXPECT_GT(agents_.started.size(), 8u);
    EXPECT_LT(agents_.started.size(), 24u);
    ASSERT_TRUE(engine_->Cancel(spec.id, ""));
  }
}

TEST_F(EngineTest, AnAgentThatCannotBeStartedSaysWhy) {
  Open();
  JobSpec spec = Plain();
  spec.hold = true;
  spec.owner.uid = spec.owner.gid = 1001;
  Submit(spec);
  const std::string attempt = StrCat(kRoot, "/users/1001/jobs/", kId, "/attempt-1");
  ASSERT_TRUE(files_.WriteAtomic(attempt, "in the way", false));
  ASSERT_TRUE(engine_->Release(kId));
  Turn();
  EXPECT_EQ(TheJob().state, JobState::kQueued);
  EXPECT_NE(TheJob().ending.reason.find(StrCat("cannot make folder '", attempt)), std::string::npos)
      << TheJob().ending.reason;
}

TEST_F(EngineTest, NoTaskIsRunAgainWhileTheReportThatMayNameItCannotBeRead) {
  Open();
  JobSpec spec = Plain();
  spec.array = *ParseArraySpec("0-2%2");
  Submit(spec);
  ASSERT_EQ(agents_.started.size(), 2u);
  const std::string attempt = StrCat(kRoot, "/jobs/", kId, "/attempt-1");
  const pid_t first = agents_.watched.begin()->first, second = agents_.watched.rbegin()->first;
  const Ending good{JobState::kSucceeded, 0, 0, -1, ""};
  for (const pid_t pid : {first, second}) {
    const std::string claim = StrCat(attempt, "/agent-", pid - first, ".claim");
    ASSERT_TRUE(files_.CreateExclusive(claim, ClaimToJson({pid, 1, "boot", "agent"})));
  }
  const int64_t now = clock_.WallUs();
  ASSERT_TRUE(files_.WriteAtomic(attempt + "/next-task", std::string("\3\0\0\0\0\0\0\0", 8), false));
  ASSERT_TRUE(files_.WriteAtomic(attempt + "/agent-0.jsonl",
                                 TaskStartLine(now, 0, 1) + TaskEndLine(now, 0, 1, good) + EndLine(now, good),
                                 false));
  Die(first);
  names_.unreadable = attempt + "/agent-0.jsonl";
  Die(second);  // it had taken the other two tasks, and was killed before it could say so
  Pass(100);
  EXPECT_EQ(TheJob().state, JobState::kRunning);
  EXPECT_EQ(agents_.started.size(), 2u);
  names_.unreadable.clear();
  for (int i = 0; i < 4; ++i) Pass(100);
  ASSERT_EQ(agents_.started.size(), 3u);
  EXPECT_EQ(agents_.started.back().retry_tasks, (std::vector<int>{1, 2}));
}

// ---- hosts

TEST_F(EngineTest, AHostThatWasRenamedKeepsItsJobsWhenItsOldNameIsGivenUp) {
  Open();
  Submit(Plain());
  const pid_t agent = Claim();
  agents_.host = "gpu2/5d";
  for (const bool lives : {true, false}) {
    if (!lives) agents_.alive.erase(agent);
    engine_ = std::make_unique<Engine>(clock_, names_, agents_, kRoot, FourGpus());
    const auto report = engine_->GiveUpHost("gpu1");
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(TheJob().state, lives ? JobState::kRunning : JobState::kLost) << *report;
  }
}

// ---- a full disk

TEST_F(EngineTest, ATrueEndIsKeptOnAFullDiskAndNoAbortTakesItsPlace) {
  files_.RefuseReserves();
  Open();
  Submit(Plain());
  const pid_t agent = Claim();
  Report(EndLine(clock_.WallUs(), {JobState::kFailed, 3, 0, 0, ""}));
  files_.SetFreeBytes(0);
  Die(agent);
  EXPECT_EQ(TheJob().state, JobState::kRunning);
  EXPECT_NE(engine_->Problem().find("the engine cannot write its journal: "), std::string::npos);
  EXPECT_NE(engine_->Problem().find(kRoot), std::string::npos);
  files_.SetFreeBytes(200);  // room for the abort, and not for the end
  const auto cancelled = engine_->Cancel(kId, "by the user");
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(cancelled.error().message.find("has ended, and its end cannot be recorded yet"),
            std::string::npos);
  files_.SetFreeBytes(std::nullopt);
  Pass(2);
  EXPECT_EQ(TheJob().state, JobState::kFailed);
  EXPECT_EQ(TheJob().ending.exit_status, 3);
  EXPECT_EQ(engine_->Problem(), "");
}

TEST_F(EngineTest, EndsAreWrittenIntoTheReserveAndNothingNewIs) {
  Open();
  Submit(Plain());
  const pid_t agent = Claim();
  Report(EndLine(clock_.WallUs(), {JobState::kFailed, 3, 0, 0, ""}));
  files_.SetFreeBytes(0);
  Die(agent);
  EXPECT_EQ(TheJob().state, JobState::kFailed);
  Open();  // the reserve is the journal's, also after a restart
  EXPECT_EQ(TheJob().ending.exit_status, 3);
}

TEST_F(EngineTest, AFolderThatCannotBePutAsideIsEmptiedWhereItIsUntilItIsGone) {
  Open();
  JobSpec spec = Plain();
  spec.hold = true;
  Submit(spec);
  ASSERT_TRUE(engine_->Cancel(kId, ""));
  Turn();
  names_.fixed = true;
  ASSERT_TRUE(engine_->Remove({kId}));
  Turn();
  const std::string folder = StrCat(kRoot, "/jobs/", kId);
  ASSERT_FALSE(agents_.emptied.empty());
  EXPECT_EQ(agents_.emptied.back().folder, folder);
  EXPECT_TRUE(agents_.emptied.back().itself);
  Pass(2);
  EXPECT_EQ(agents_.emptied.size(), 2u) << "it is still there";
  ASSERT_TRUE(files_.RemoveTree(folder));
  Pass(4);
  agents_.emptied.clear();
  Pass(600);
  EXPECT_TRUE(agents_.emptied.empty());
}

TEST_F(EngineTest, ARemovalThatWasRecordedAndNotDoneIsDoneByTheNextEngine) {
  Open();
  JobSpec spec = Plain();
  spec.hold = true;
  Submit(spec);
  ASSERT_TRUE(engine_->Cancel(kId, ""));
  Turn();
  names_.fixed = true;
  ASSERT_TRUE(engine_->Remove({kId}));
  Turn();
  names_.fixed = false;
  Open();
  EXPECT_FALSE(files_.Exists(StrCat(kRoot, "/jobs/", kId)));
  EXPECT_TRUE(files_.Exists(StrCat(kRoot, "/trash/", kId)));
}

TEST_F(EngineTest, AJournalOfFewLongRecordsIsRewritten) {
  Open();
  int64_t longest = 0;
  for (int i = 0; i < 40; ++i) {
    JobSpec spec = Plain(StrCat("ann_1700000000_000000", 10 + i));
    spec.hold = true;
    spec.command.emplace_back(1 << 20, 'x');
    Submit(spec);
    ASSERT_TRUE(engine_->Cancel(spec.id, ""));
    ASSERT_TRUE(engine_->Remove({spec.id}));
    Turn();
    longest = std::max(longest, engine_->journal().SizeBytes());
  }
  EXPECT_LT(longest, 18 << 20);
  EXPECT_GT(longest, 15 << 20) << "and not after each";
}

}  // namespace
}  // namespace overcap
