// SPDX-License-Identifier: Apache-2.0
// The engine with its scheduler and journal, driven by a seed through requests, ends, kills, power cuts and
// full disks. One thread, no real clock, files or processes: a failing seed fails again. OVERCAP_SIM_SEEDS
// and OVERCAP_SIM_FIRST choose the seeds. What a seed leads to is the same with sanitizers, in tenfold time:
// these get fewer.
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "daemon/engine.h"
#include "daemon/recover.h"
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

  // The same without faults: what the folders say is all there.
  void QuietStep() {
    const uint64_t what = random_.Below(16);
    if (what < 4) return Submit();
    if (what == 4)
      return Request([this](const std::string& id) { (void)engine_->Cancel(id, "by the user"); });
    if (what == 5) return Request([this](const std::string& id) { (void)engine_->Hold({id}); });
    if (what == 6) return Request([this](const std::string& id) { (void)engine_->Release(id); });
    agents_.Step();
    Deliver();
  }

  // The engine ends, its journal is damaged once at random, `overcap daemon recover` mends it. `quiet`: there
  // were no faults before, so that nothing but the end of the journal may be lost.
  void DamageAndMend(bool quiet) {
    files_.SetFreeBytes(std::nullopt);
    life_.Revive();
    const std::string path = StrCat(kRoot, "/journal");
    std::map<std::string, Known> before;
    for (const auto& [key, job] : engine_->table().jobs()) before.emplace(job->spec.id, Known(*job));
    std::map<std::string, std::string> copies;
    for (const auto& [id, known] : before) copies[id] = CopyOf(id);
    engine_.reset();
    agents_.EngineDied();
    const std::string whole = *files_.Read(path);
    const std::string damaged = Damaged(whole);
    ASSERT_TRUE(files_.WriteAtomic(path, damaged, true));
    const bool refused = !Fold(damaged, nullptr);
    const bool gone = quiet && random_.Below(20) == 0;
    if (gone) {
      ASSERT_TRUE(files_.Remove(path));
    }
    const std::string boot = quiet ? agents_.CurrentBoot() : "";
    const auto mended = MendRoot(files_, kRoot, false, boot, clock_.WallUs());
    if (gone && before.empty()) return StartEngine();
    ASSERT_TRUE(mended) << mended.error().message;
    EXPECT_EQ(mended->starts_with("the journal is not damaged"), !refused && !gone) << *mended;
    JobTable after;
    ASSERT_TRUE(Fold(*files_.Read(path), &after)) << *mended;
    const auto again = MendRoot(files_, kRoot, false, boot, clock_.WallUs());
    ASSERT_TRUE(again);
    EXPECT_TRUE(again->starts_with("the journal is not damaged")) << *again;
    ++damages_seen, refusals_seen += refused || gone;
    for (const auto& [id, known] : before) {
      const Job* job = after.Find(id);
      const std::string what =
          StrCat(id, "\n", *mended, "\nbefore: ", JobStateName(known.state), HistoryOf(id));
      if (job == nullptr &&
          !quiet) {  // a power cut took its spec too: nothing is left to run, and it is named
        EXPECT_NE(mended->find(id), std::string::npos) << what;
        std::erase(accepted_, id);
        continue;
      }
      ASSERT_NE(job, nullptr) << what;
      const Known now(*job);
      // A power cut may have taken the copy of a line that is damaged now: CheckAll() sees that nothing runs
      // twice.
      if (!quiet) continue;
      EXPECT_EQ(now.state, known.state) << what;
      EXPECT_EQ(now.ended_us, known.ended_us) << what;
      EXPECT_EQ(now.ending, known.ending) << what;
      EXPECT_EQ(now.progress, known.progress) << what;
      EXPECT_EQ(now.slots, known.slots) << what;
    }
    StartEngine();
    if (!quiet) return;
    for (const auto& [id, text] : copies)
      EXPECT_TRUE(CopyOf(id).starts_with(text) && Once(CopyOf(id))) << id << "\n"
                                                                    << *mended << "\n"
                                                                    << CopyOf(id);
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

  static inline int damages_seen = 0, refusals_seen = 0;
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
  struct Known {
    explicit Known(const Job& job)
        : state(job.state), ending(job.ending), progress(job.progress), ended_us(job.progress.ended_us) {
      for (const Slot& slot : job.slots) slots.emplace_back(slot.attempt, slot.slot, slot.gpus);
    }
    JobState state;
    Ending ending;
    JobProgress progress;
    int64_t ended_us;
    std::vector<std::tuple<int, int, std::vector<int>>> slots;
  };

  std::string CopyOf(const std::string& id) {
    return files_.Read(StrCat(kRoot, "/jobs/", id, "/events.jsonl")).value_or("");
  }
  static bool Once(const std::string& text) {
    std::set<std::string> seen;
    for (const std::string& line : Split(text, '\n')) {
      if (!line.empty() && !seen.insert(line).second) return false;
    }
    return true;
  }
  // Reads a journal as the engine does.
  bool Fold(const std::string& text, JobTable* table) {
    JobTable own;
    JobTable& all = table == nullptr ? own : *table;
    EXPECT_TRUE(files_.WriteAtomic("/state/probe", text, true));
    Journal probe(files_, "/state/probe");
    return probe
        .Open([&](const Event& event) {
          return event.kind == EventKind::kMachine ? Result<void>() : all.Apply(event);
        })
        .has_value();
  }

  // One thing is wrong. Never a whole record missing at the end: nothing in the journal can show that.
  std::string Damaged(const std::string& whole) {
    std::vector<std::string> lines = Split(whole.substr(0, whole.size() - 1), '\n');
    const size_t at = random_.Below(lines.size()), other = random_.Below(lines.size());
    std::string text = whole;
    switch (random_.Below(9)) {
      case 0:
        text[random_.Below(text.size() - 1)] ^= static_cast<char>(1 << random_.Below(8));
        return text;
      case 1:
        return text + lines[at].substr(0, random_.Below(lines[at].size()));  // a torn write
      case 2:
        if (at + 1 < lines.size()) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 3:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), lines[at]);
        break;
      case 4:
        std::swap(lines[at], lines[other]);
        break;
      case 5:
        return text + std::string(1 + random_.Below(5000), '\0');
      case 6:
        for (uint64_t i = 1 + random_.Below(300); i > 0; --i) text += static_cast<char>(random_.Below(256));
        return text;
      case 7:
        for (char& byte : lines[at]) byte = static_cast<char>(random_.Below(256));
        break;
      default:
        std::fill(lines[at].begin(), lines[at].end(), '\0');
    }
    return Join(lines, "\n") + "\n";
  }

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
          << job.spec.id << " task " << task << " ran " << runs << " times" << HistoryOf(job.spec.id);
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
    const auto salvaged = SalvageJournal(*files_.Read(StrCat(kRoot, "/journal")));
    for (const auto& record : salvaged->records) {
      if (record.event.id == id) lines += "\n  " + EventToJson(record.event, false);
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

// How many journals each test damages; 500 in full (tests/storm/run).
int Damages() {
  return FromEnvironment("OVERCAP_DAMAGES", 50);
}

class DamagedJournal : public testing::Test {
 protected:
  static void Play(int damages, uint64_t first_seed, bool quiet, bool with_policy) {
    World::damages_seen = World::refusals_seen = 0;
    for (uint64_t seed = first_seed; World::damages_seen < damages && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE(StrCat("seed ", seed));
      World world(seed, with_policy);
      for (int round = 0; round < 3 && !HasFatalFailure(); ++round) {
        for (int step = 0; step < 60; ++step) quiet ? world.QuietStep() : world.Step();
        world.DamageAndMend(quiet);
      }
      world.Settle();
      world.CheckAll();
    }
    EXPECT_GT(World::refusals_seen, damages / 3);
    const char* where = with_policy ? " with labs" : quiet ? "" : " after faults";
    if (HasFailure()) return;
    std::cout << "storm: journal damages" << where << ": " << World::damages_seen << ", "
              << World::refusals_seen << " refused by the engine: 0 dead ends, 0 twice\n";
  }
};

TEST_F(DamagedJournal, IsMendedToExactlyWhatItSaidAndNoJobRunsTwice) {
  Play(Damages(), 1, true, false);
}

TEST_F(DamagedJournal, IsMendedWhereLabsShareTheMachine) {
  Play(Damages(), 100'000, true, true);
}

// Power cuts, full disks and killed engines before: folders know less. Every journal is mended, nothing runs
// twice.
TEST_F(DamagedJournal, IsMendedAfterFaultsToo) {
  Play(Damages(), 200'000, false, false);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSimulation,
                         testing::Range(FromEnvironment("OVERCAP_SIM_FIRST", 1),
                                        FromEnvironment("OVERCAP_SIM_FIRST", 1) + Seeds()));

}  // namespace
}  // namespace overcap
