// SPDX-License-Identifier: Apache-2.0
#include "control/submit.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"
#include "clusters/fake/fake_cluster.h"
#include "control/resubmit.h"
#include "sys/random.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

Machine FourGpus() {
  Machine machine{.host = "fake", .cpus = 8, .mem_bytes = 0, .gpus = {}};
  for (int i = 0; i < 4; ++i) machine.gpus.push_back({.index = i, .type = "a40", .uuid = {}});
  return machine;
}

class SubmitTest : public testing::Test {
 protected:
  SubmitTest() : cluster_("fake", FourGpus()), random_(1) {}

  void SetUp() override {
    char folder[] = "/tmp/overcap_submit_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    fs::create_directories(root_ + "/code/sub");
    Write("code/run.sh", "#!/bin/sh\n", 0755);
    Write("code/plain.txt", "text\n", 0644);
    request_.command = {"true"};
    request_.folder = root_ + "/code";
    request_.user = "ann";
    request_.environment = {"PATH=/usr/bin:/bin", "RANK=7", "TOKEN=secret"};
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(root_ + "/" + path) << text;
    fs::permissions(root_ + "/" + path, static_cast<fs::perms>(mode));
  }
  SubmitTools Tools() { return {cluster_, config_, cluster_.clock(), random_, root_ + "/store"}; }
  Result<PreparedJob> Prepare() { return PrepareJob(request_, Tools()); }
  // The message of a refusal, which must be the user's to change and leave nothing behind.
  std::string Refusal() {
    const auto prepared = Prepare();
    EXPECT_FALSE(prepared);
    if (prepared) return {};
    EXPECT_EQ(prepared.error().code, ErrorCode::kUsage);
    EXPECT_FALSE(fs::exists(root_ + "/store"));
    return prepared.error().message;
  }

  std::string root_;
  FakeCluster cluster_;
  SeededRandom random_;
  Config config_;
  JobRequest request_;
};

TEST_F(SubmitTest, FreezesCodeAndEnvironment) {
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  const JobSpec& spec = prepared->plan.spec;
  EXPECT_EQ(spec.snapshot, prepared->capture->tree_id);
  EXPECT_EQ(prepared->capture->files, 2);
  EXPECT_EQ(spec.workdir, "");
  EXPECT_EQ(spec.source, root_ + "/code");
  EXPECT_EQ(spec.resources.gpus, 1);
  EXPECT_EQ(spec.resources.cpus, 2);
  const auto store = SnapshotStore::Open(root_ + "/store");
  ASSERT_TRUE(store);
  EXPECT_EQ(*store->GetBlob(spec.environment), std::string("PATH=/usr/bin:/bin\0TOKEN=secret", 31));
}

TEST_F(SubmitTest, ValuesOfVariablesAreNotInTheSpec) {
  request_.env = {"KEY=hidden"};
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->plan.spec.env_names, std::vector<std::string>{"KEY"});
  const std::string all = SpecToJson(prepared->plan.spec) + prepared->plan.text;
  EXPECT_EQ(all.find("secret"), std::string::npos);
  EXPECT_EQ(all.find("hidden"), std::string::npos);
}

TEST_F(SubmitTest, TheSameFolderGivesTheSameSnapshotUnderANewId) {
  const auto first = Prepare(), second = Prepare();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->plan.spec.snapshot, second->plan.spec.snapshot);
  EXPECT_NE(first->plan.spec.id, second->plan.spec.id);
}

TEST_F(SubmitTest, ThePlanNamesThePriority) {
  EXPECT_EQ(Prepare()->plan.text.find("priority"), std::string::npos);
  request_.priority = 5;
  EXPECT_NE(Prepare()->plan.text.find("priority    5\n"), std::string::npos);
}

TEST_F(SubmitTest, AJobAfterOneThatHasNotSucceededIsRefused) {
  request_.hold = true;
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared);
  const auto record = cluster_.Submit(prepared->plan);
  ASSERT_TRUE(record);
  const std::string& id = record->spec.id;
  EXPECT_TRUE(CheckAfter(cluster_, {{id, false}}));
  ASSERT_TRUE(cluster_.Cancel({id}, "not wanted"));
  ASSERT_TRUE(cluster_.Wait({id}, WaitUntil::kEnded, 10));
  EXPECT_TRUE(CheckAfter(cluster_, {{id, true}}));
  const auto refused = CheckAfter(cluster_, {{id, false}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().hint, StrCat("--after-any ", id, " starts it however that one has ended"));
}

TEST_F(SubmitTest, ACommandThatDoesNotExistIsRefused) {
  request_.command = {"no-such-program-here"};
  EXPECT_EQ(Refusal(), "command 'no-such-program-here' does not exist");
}

TEST_F(SubmitTest, ACommandWithoutPermissionIsRefused) {
  request_.command = {"./plain.txt"};
  EXPECT_NE(Refusal().find("no permission"), std::string::npos);
}

TEST_F(SubmitTest, NoCommandIsRefused) {
  request_.command = {};
  EXPECT_EQ(Refusal(), "there is no command to run");
}

TEST_F(SubmitTest, AMissingWorkdirIsRefused) {
  request_.workdir = "nowhere";
  EXPECT_EQ(Refusal(), "workdir 'nowhere' does not exist");
}

TEST_F(SubmitTest, MoreGpusThanThereAreAreRefused) {
  request_.gpus = 8;
  EXPECT_EQ(Refusal(), "asks for 8 GPUs, this machine has 4");
}

TEST_F(SubmitTest, RelativeCommandsAreLookedUpInTheWorkdir) {
  request_.command = {"../run.sh"};
  request_.workdir = "sub";
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->plan.spec.workdir, "sub");
  request_.command = {"./run.sh"};
  EXPECT_FALSE(Prepare());
}

TEST_F(SubmitTest, AnIgnoredCommandIsRefused) {
  Write("code/.gitignore", "run.sh\n", 0644);
  request_.command = {"./run.sh"};
  const auto prepared = Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ErrorCode::kUsage);
  EXPECT_EQ(prepared.error().message, "command './run.sh' is not in the captured code");
}

TEST_F(SubmitTest, OutsideOfTheFolderNothingIsCaptured) {
  request_.workdir = "/tmp";
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->plan.spec.snapshot, "");
  EXPECT_EQ(prepared->plan.spec.workdir, "/tmp");
  EXPECT_EQ(prepared->notes.size(), 1u);
}

TEST_F(SubmitTest, ACaptureOverTheLimitNamesItsLargestFolders) {
  Write("code/sub/big", std::string(5000, 'x'), 0644);
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared);
  EXPECT_EQ(CaptureWarning(*prepared->capture, config_), "");
  config_.code.max_bytes_warn = 1000;
  EXPECT_NE(CaptureWarning(*prepared->capture, config_).find("'sub"), std::string::npos);
}

class ResubmitTest : public SubmitTest {
 protected:
  // A job with its spec in its folder.
  JobRecord Submitted(std::vector<std::string> command, int gpus) {
    request_.command = std::move(command);
    request_.gpus = gpus;
    const auto prepared = Prepare();
    EXPECT_TRUE(prepared) << prepared.error().message;
    const JobSpec& spec = prepared->plan.spec;
    EXPECT_TRUE(cluster_.Submit(prepared->plan));
    const std::string dir = root_ + "/" + spec.id;
    fs::create_directory(dir);
    std::ofstream(dir + "/spec.json") << SpecToJson(spec);
    cluster_.SetJobFolder(spec.id, dir, {});
    return cluster_.Query({spec.id})->front();
  }
  JobSpec Again(const JobRecord& old, std::optional<int> gpus = {}) {
    const auto plan = PlanResubmit(cluster_, old, gpus, cluster_.clock(), random_);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? plan->spec : JobSpec{};
  }
};

TEST_F(ResubmitTest, IsTheSameBitForBit) {
  const JobRecord old = Submitted({"true", "a  b"}, 2);
  cluster_.clock().Advance(5'000'000);
  JobSpec spec = Again(old);
  EXPECT_NE(spec.id, old.spec.id);
  EXPECT_EQ(spec.resubmit_of, old.spec.id);
  EXPECT_EQ(spec.command, old.spec.command);
  EXPECT_EQ(spec.snapshot, old.spec.snapshot);
  EXPECT_EQ(spec.environment, old.spec.environment);
  EXPECT_EQ(spec.resources, old.spec.resources);
}

TEST_F(ResubmitTest, ALivingJobIsReplaced) {
  const JobRecord running = Submitted({"sleep", "60"}, 1), ended = Submitted({"true"}, 1);
  EXPECT_EQ(Again(running).replaces, running.spec.id);
  EXPECT_EQ(Again(ended).replaces, "");
}

TEST_F(ResubmitTest, OtherGpusBringOtherRanksAndProcessors) {
  const JobSpec spec = Again(Submitted({"true"}, 2), 4);
  EXPECT_EQ(spec.resources.gpus, 4);
  EXPECT_EQ(spec.resources.ranks_per_node, 4);
  EXPECT_EQ(spec.resources.cpus, 8);
}

TEST_F(ResubmitTest, RanksThatTheUserChoseStay) {
  request_.one_rank_per_node = true;
  EXPECT_EQ(Again(Submitted({"true"}, 2), 4).resources.ranks_per_node, 1);
}

TEST_F(ResubmitTest, MoreGpusThanThereAreAreRefused) {
  const auto plan = PlanResubmit(cluster_, Submitted({"true"}, 2), 5, cluster_.clock(), random_);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "asks for 5 GPUs, this machine has 4");
}

// A cluster with nothing to choose in it.
class PlainCluster : public FakeCluster {
 public:
  using FakeCluster::FakeCluster;
  Capabilities GetCapabilities() const override {
    Capabilities can = FakeCluster::GetCapabilities();
    can.placement = can.warning = can.timeout_requeue = false;
    return can;
  }
};

TEST_F(SubmitTest, PlacementWarningAndRequeueReachTheSpec) {
  request_.placement.partitions = {"short", "overcap"};
  request_.placement.args = {"--exclusive"};
  request_.warn_seconds = 90;
  request_.requeue_on_timeout = true;
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->plan.spec.placement, request_.placement);
  EXPECT_EQ(prepared->plan.spec.warn_seconds, 90);
  EXPECT_TRUE(prepared->plan.spec.requeue_on_timeout);
}

TEST_F(SubmitTest, AClusterWithoutPlacesRefusesThem) {
  PlainCluster plain("plain", FourGpus());
  const auto refusal = [&] {
    const auto prepared = PrepareJob(request_, {plain, config_, plain.clock(), random_, root_ + "/store"});
    return prepared ? "fine" : prepared.error().message;
  };
  config_.defaults.requeue = config_.defaults.requeue_on_timeout = true;
  config_.defaults.warn_seconds = 60;
  EXPECT_EQ(refusal(), "fine");  // defaults are for the clusters that know them
  request_.placement.qos = "high";
  EXPECT_EQ(refusal(), "cluster 'plain' has no partitions, accounts, QOS or nodes to choose");
  request_.placement = {};
  request_.warn_seconds = 5;
  EXPECT_EQ(refusal(), "cluster 'plain' cannot warn jobs before their time limit");
  request_.warn_seconds.reset();
  request_.requeue_on_timeout = true;
  EXPECT_EQ(refusal(), "cluster 'plain' cannot requeue jobs at their time limit");
}

TEST_F(SubmitTest, TheConfiguredWarningIsForJobsThatAreRequeued) {
  config_.defaults.warn_seconds = 60;
  EXPECT_EQ(Prepare()->plan.spec.warn_seconds, 0);
  request_.requeue = true;
  EXPECT_EQ(Prepare()->plan.spec.warn_seconds, 60);
}

TEST_F(SubmitTest, DefaultsOfTheClusterCount) {
  ASSERT_TRUE(
      ApplyConfigText("clusters: {fake: {defaults: {gpus: 3, time: 1h}}}\ndefaults: {gpus: 0, mem: 1G}",
                      "overcap.yaml", &config_));
  const auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_EQ(prepared->plan.spec.resources.gpus, 3);
  EXPECT_EQ(prepared->plan.spec.resources.time_seconds, 3600);
  EXPECT_EQ(prepared->plan.spec.resources.mem_bytes, int64_t{1} << 30);
}

TEST_F(SubmitTest, ABatchScriptRunsOnceAndMustBeCaptured) {
  Write("code/job.sh", "#!/bin/sh\n#SBATCH -N1\n", 0644);
  request_.command = {"/bin/sh", "job.sh"};
  request_.batch_script = "job.sh";
  auto prepared = Prepare();
  ASSERT_TRUE(prepared) << prepared.error().message;
  EXPECT_TRUE(prepared->plan.spec.batch);
  EXPECT_EQ(prepared->plan.spec.resources.gpus, 0);
  EXPECT_EQ(prepared->plan.spec.resources.ranks_per_node, 1);
  Write("code/.overcapignore", "job.sh\n", 0644);
  prepared = Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().message, "script 'job.sh' is not in the captured code");
}

}  // namespace
}  // namespace overcap
