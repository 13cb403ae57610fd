// SPDX-License-Identifier: Apache-2.0
// The engine with its scheduler and journal, driven by a seed through requests, ends, kills, power cuts and
// full disks. One thread, no real clock, files or processes: a failing seed fails again. OVERCAP_SIM_SEEDS
// and OVERCAP_SIM_FIRST choose the seeds. What a seed leads to is the same with sanitizers, in tenfold time:
// these get fewer.
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "daemon/engine.h"
#include "model/job_id.h"
#include "model/policy/policy_text.h"
#include "mortal_files.h"
#include "sim_agents.h"
#include "sys/clock.h"
#include "sys/fake_files.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr char kRoot[] = "/state/overcap";
constexpr int kSteps = 400;

// Steps are tenths of seconds: grace and quantum end now and then.
constexpr char kPolicy[] = R"(
nodes: {box: {gpus: a40:4, cpus: 4}}
labs:
  vision: 2 ann
  nlp: 2 ann bob
partitions:
  overcap: {grace: 1s, quantum: 1s}
  user-overcap: {grace: 0, quantum: 1s}
)";

int FromEnvironment(const char* name, int absent) {
  const char* value = std::getenv(name);
  return value == nullptr ? absent : std::atoi(value);
}

Machine FourGpus() {
  Machine machine;
  machine.cpus = 4;
  machine.mem_bytes = int64_t{1} << 34;
  for (int i = 0; i < 4; ++i) machine.gpus.push_back({i, "a40", "", 0});
  return machine;
}

class World {
 public:
  explicit World(uint64_t seed, bool with_policy = false)
      : with_policy_(with_policy),
        random_(seed),
        files_(seed + 1),
        mortal_(files_, life_),
        agents_(files_, random_, life_, clock_) {
    if (seed % 2 == 0) files_.RefuseReserves();
    EXPECT_TRUE(files_.MakeFolders("/state"));
    EXPECT_TRUE(files_.SyncFolder("/"));
    StartEngine();
  }

  void Step() {
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2:
        return Submit();
      case 3:
        return Request([this](const std::string& id) { (void)engine_->Cancel(id, "by the user"); });
      case 4:
        return Request([this](const std::string& id) { (void)engine_->Hold({id}); });
      case 5:
        return Request([this](const std::string& id) { (void)engine_->Release(id); });
      case 6:
        return Fault();
      default:
        agents_.Step();
        Deliver();
    }
  }

  // Lets everything come to rest, without faults.
  void Settle() {
    files_.SetFreeBytes(std::nullopt);
    life_.Revive();
    if (!engine_) StartEngine();
    for (const auto& [key, job] : engine_->table().jobs()) held_.push_back(job->spec.id);
    for (const std::string& id : held_) (void)engine_->Release(id);
    for (int i = 0; i < 20'000 && engine_->table().ActiveCount() > 0; ++i) {
      agents_.Step();
      clock_.Advance(2'000'000);
      Deliver();
    }
  }

  static inline int jobs_seen = 0, runs_seen = 0, preemptions_seen = 0, stopped_seen = 0;  // over all seeds

  void CheckAll() {
    CheckJournal();
    jobs_seen += static_cast<int>(accepted_.size());
    runs_seen += static_cast<int>(agents_.runs.size());
    stopped_seen += agents_.stopped;
    for (const std::string& id : accepted_) {
      const Job* job = engine_->table().Find(id);
      ASSERT_NE(job, nullptr) << "job " << id << " was accepted and is lost";
      EXPECT_TRUE(job->ended()) << id << " is still " << JobStateName(job->state) << ": "
                                << engine_->RecordOf(*job, true).reason << HistoryOf(id);
      CheckRuns(*job);
      preemptions_seen += job->progress.preemptions;
    }
    EXPECT_EQ(engine_->FreeGpus(), 4) << "GPUs leaked";
  }

 private:
  void CheckRuns(const Job& job) {
    const int tasks = job.is_array() ? job.spec.array.Count() : 1;
    int ran = 0;
    for (int i = 0; i < tasks; ++i) {
      const int task = job.is_array() ? job.spec.array.IndexAt(i) : -1;
      const int runs = agents_.runs[{job.spec.id, task}];
      ran += runs > 0;
      const bool may_run_again =
          job.spec.requeue || (job.spec.max_restarts > 0 && !job.is_array()) || job.progress.preemptions > 0;
      EXPECT_TRUE(runs <= 1 || may_run_again)
          << job.spec.id << " task " << task << " ran " << runs << " times";
    }
    if (job.state == JobState::kSucceeded) {
      EXPECT_EQ(ran, tasks) << job.spec.id << " succeeded without running";
    }
    if (!job.is_array() && job.state == JobState::kSucceeded) {
      EXPECT_EQ(agents_.endings[job.spec.id].state, JobState::kSucceeded);
    }
    if (!job.is_array() && job.state == JobState::kFailed) {
      const int status = job.ending.exit_status;  // 124: the engine has ended it
      EXPECT_TRUE(status == 124 || status == agents_.endings[job.spec.id].exit_status) << status;
    }
  }

  // The journal alone gives the table that is in memory.
  void CheckJournal() {
    JobTable table;
    Journal journal(files_, StrCat(kRoot, "/journal"));
    ASSERT_TRUE(journal.Open([&](Event event) { return table.Apply(event); }));
    ASSERT_EQ(table.jobs().size(), engine_->table().jobs().size());
    for (const auto& [key, job] : engine_->table().jobs()) {
      EXPECT_EQ(table.Find(job->spec.id)->state, job->state) << job->spec.id;
    }
  }

  // What the journal says of a job, for the message of a failure.
  std::string HistoryOf(const std::string& id) {
    std::string lines;
    for (const Event& event : SalvageJournal(*files_.Read(StrCat(kRoot, "/journal"))).events) {
      if (event.id == id) lines += "\n  " + EventToJson(event, false);
    }
    return lines;
  }

  void StartEngine() {
    life_.Revive();
    engine_ = std::make_unique<Engine>(clock_, mortal_, agents_, kRoot, FourGpus());
    if (with_policy_) {
      EXPECT_TRUE(engine_->SetPolicy(*ParsePolicy(kPolicy, "policy.yaml"), true));
    }
    const auto opened = engine_->Open();
    if (!opened) {
      // A full disk may refuse the start; nothing else may.
      ASSERT_EQ(opened.error().code, ErrorCode::kUnavailable) << opened.error().message;
      files_.SetFreeBytes(std::nullopt);
      return StartEngine();
    }
    Turn();
  }

  // Requests of this turn count only when the turn went through.
  void Turn() {
    const auto turned = engine_->Turn();
    if (!turned || life_.Dead()) return EngineDied();
    accepted_.insert(accepted_.end(), asked_.begin(), asked_.end());
    asked_.clear();
  }

  void EngineDied() {
    asked_.clear();
    engine_.reset();
    agents_.EngineDied();
    // The world goes on for a while without an engine.
    for (uint64_t i = random_.Below(6); i > 0; --i) agents_.Step();
    StartEngine();
  }

  void Deliver() {
    for (const AgentToken& token : agents_.TakeEnded()) engine_->AgentEnded(token);
    clock_.Advance(100'000);
    Turn();
  }

  void Submit() {
    JobSpec spec;
    spec.id = MakeJobId("ann", 1'700'000'000, ++next_id_);
    spec.user = "ann";
    spec.cluster = "local";
    spec.workdir = "/data";
    spec.command = {"train"};
    spec.submitted_us = clock_.WallUs();
    spec.resources.gpus = static_cast<int>(random_.Below(5));
    spec.resources.cpus = static_cast<int>(random_.Below(3));
    spec.resources.time_seconds = random_.Below(2) == 0 ? 0 : 60;
    spec.requeue = random_.Below(2) == 0;
    spec.max_restarts = static_cast<int>(random_.Below(2));
    spec.hold = random_.Below(8) == 0;
    spec.priority = static_cast<int>(random_.Below(3));
    if (random_.Below(5) == 0) spec.array = *ParseArraySpec(random_.Below(2) == 0 ? "0-6%2" : "1-9:2");
    if (!accepted_.empty() && random_.Below(6) == 0) spec.after = {{Any(), random_.Below(2) == 0}};
    if (!accepted_.empty() && random_.Below(8) == 0) spec.replaces = Any();
    if (with_policy_) Place(&spec);
    const auto submitted = engine_->Submit(spec);
    if (with_policy_ && !submitted && submitted.error().code == ErrorCode::kUsage) return;  // over its cap
    if (submitted) asked_.push_back(spec.id);
    // Only a full disk, or the engine's own death, may refuse a good job.
    if (!submitted && !life_.Dead()) {
      EXPECT_EQ(submitted.error().code, ErrorCode::kUnavailable) << submitted.error().message;
    }
    Turn();
  }

  void Place(JobSpec* spec) {
    constexpr const char* kPartitions[] = {"short", "overcap", "user-overcap", "debug"};
    spec->user = random_.Below(2) == 0 ? "ann" : "bob";
    spec->placement.account = spec->user == "bob" ? "nlp" : random_.Below(2) == 0 ? "vision" : "nlp";
    spec->placement.partitions = {kPartitions[random_.Below(4)]};
    if (random_.Below(3) == 0) spec->placement.partitions.emplace_back("overcap");
    spec->resources.time_seconds = random_.Below(2) == 0 ? 0 : 600;
  }

  std::string Any() { return accepted_[random_.Below(accepted_.size())]; }

  template <typename Act>
  void Request(Act act) {
    if (accepted_.empty()) return;
    act(Any());
    Turn();
  }

  void Fault() {
    switch (random_.Below(6)) {
      case 0:
        return life_.DieAfter(static_cast<int>(random_.Below(12)));
      case 1:
        life_.Kill();
        return EngineDied();
      case 2:
        agents_.KillOne();
        return Deliver();
      case 3:
        files_.Crash(CrashKind::kPowerCut);
        agents_.PowerCut();
        return EngineDied();
      case 4:
        return files_.SetFreeBytes(static_cast<int64_t>(random_.Below(400)));
      default:
        files_.SetFreeBytes(std::nullopt);
        clock_.SetWall(clock_.WallUs() - static_cast<int64_t>(random_.Below(3'600'000'000)));  // set back
    }
  }

  const bool with_policy_;
  SeededRandom random_;
  FakeClock clock_;
  FakeFiles files_;
  Life life_;
  MortalFiles mortal_;
  SimAgents agents_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::string> asked_, accepted_, held_;
  uint32_t next_id_ = 0;
};

int Seeds() {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kUsual = 100;
#else
  constexpr int kUsual = 300;
#endif
  return FromEnvironment("OVERCAP_SIM_SEEDS", kUsual);
}

class EngineSimulation : public testing::TestWithParam<int> {
 protected:
  // A simulation in which nothing happens proves nothing.
  static void TearDownTestSuite() {
    const int seeds = Seeds();
    EXPECT_GT(World::jobs_seen, 20 * seeds);
    EXPECT_GT(World::runs_seen, 20 * seeds);
    EXPECT_GT(World::preemptions_seen, seeds);
    EXPECT_GT(World::stopped_seen, seeds);
  }
};

TEST_P(EngineSimulation, LosesNoJobRunsNoneTwiceAndGivesNoGpuTwice) {
  const uint64_t seed = static_cast<uint64_t>(GetParam());
  SCOPED_TRACE(StrCat("seed ", seed));
  World world(seed);
  for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) world.Step();
  world.Settle();
  world.CheckAll();
}

// Kills of the engine in the middle of preemptions too: between what is recorded, the warning, the end of the
// victim and the start of who needs its place.
TEST_P(EngineSimulation, DoesTheSameWhereLabsShareTheMachine) {
  const uint64_t seed = static_cast<uint64_t>(GetParam()) + 1'000'000;
  SCOPED_TRACE(StrCat("seed ", seed));
  World world(seed, true);
  for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) world.Step();
  world.Settle();
  world.CheckAll();
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSimulation,
                         testing::Range(FromEnvironment("OVERCAP_SIM_FIRST", 1),
                                        FromEnvironment("OVERCAP_SIM_FIRST", 1) + Seeds()));

}  // namespace
}  // namespace overcap
