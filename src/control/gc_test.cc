// SPDX-License-Identifier: Apache-2.0
#include "control/gc.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"
#include "clusters/fake/fake_cluster.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

std::vector<std::string> Chosen(const std::vector<EndedJob>& ended, const GcRequest& request,
                                int64_t now_us) {
  std::vector<std::string> ids;
  for (const EndedJob& job : ChooseJobs(ended, request, now_us)) ids.push_back(job.id);
  return ids;
}

using Ids = std::vector<std::string>;
const std::vector<EndedJob> kEnded = {
    {"new", 900 * kSecond, 10}, {"old", 100 * kSecond, 30}, {"mid", 500 * kSecond, 20}};

TEST(ChooseJobs, ByAge) {
  EXPECT_EQ(Chosen(kEnded, {.age_seconds = 450}, 1000 * kSecond), (Ids{"old", "mid"}));
}

TEST(ChooseJobs, BySizeTheOldestFirst) {
  EXPECT_EQ(Chosen(kEnded, {.size_bytes = 30}, 1000 * kSecond), Ids{"old"});
  EXPECT_EQ(Chosen(kEnded, {.size_bytes = 29}, 1000 * kSecond), (Ids{"old", "mid"}));
}

TEST(ChooseJobs, WithoutLimitsNoneGoes) {
  EXPECT_EQ(Chosen(kEnded, {}, 1000 * kSecond), Ids{});
}

class GcTest : public testing::Test {
 protected:
  GcTest() : cluster_("fake", Machine{.host = "fake", .cpus = 4, .mem_bytes = 0, .gpus = {}}) {}
  void SetUp() override {
    char folder[] = "/tmp/overcap_gc_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
    store_ = root_ + "/store";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Submit(const std::string& id, std::vector<std::string> command, const std::string& environment) {
    JobSpec spec;
    spec.id = id;
    spec.command = std::move(command);
    spec.environment = environment;
    ASSERT_TRUE(cluster_.Submit({spec, ""}));
  }
  std::string Put(const std::string& bytes) {
    const auto store = SnapshotStore::Open(store_, {.clock = &cluster_.clock()});
    return *store->PutBlob(bytes);
  }
  bool Stored(const std::string& id) { return SnapshotStore::Open(store_)->GetBlob(id).has_value(); }

  FakeCluster cluster_;
  std::string root_, store_;
};

TEST_F(GcTest, RemovesOldJobsAndWhatOnlyTheyNeeded) {
  const std::string gone = Put("gone"), kept = Put("kept");
  Submit("a_1_00000001", {"true"}, gone);
  Submit("a_1_00000002", {"sleep", "1000000000"}, kept);
  ASSERT_TRUE(cluster_.Query({"a_1_00000001"}));
  // The store's own times are the file system's.
  cluster_.clock().SetWall(PosixClock().WallUs() + 7200 * kSecond);
  ASSERT_TRUE(cluster_.Wait({"a_1_00000001"}, WaitUntil::kEnded, 0));
  cluster_.clock().Advance(1000 * kSecond);
  const auto report = CollectGarbage(cluster_, store_, {.age_seconds = 10}, cluster_.clock());
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->jobs.size(), 1u);
  EXPECT_EQ(report->jobs[0].id, "a_1_00000001");
  EXPECT_FALSE(Stored(gone));
  EXPECT_FALSE(cluster_.Query({"a_1_00000001"}));
}

TEST_F(GcTest, KeepsWhatJobsOfOtherClustersNeed) {
  const std::string kept = Put("kept");
  std::filesystem::create_directories(root_ + "/jobs/b_1_00000001");
  std::filesystem::create_directories(root_ + "/jobs/half");
  JobSpec spec;
  spec.id = "b_1_00000001";
  spec.command = {"true"};
  spec.environment = kept;
  std::ofstream(root_ + "/jobs/b_1_00000001/spec.json") << SpecToJson(spec);
  std::ofstream(root_ + "/jobs/half/spec.json") << "{";
  cluster_.clock().SetWall(PosixClock().WallUs() + 7200 * kSecond);
  ASSERT_TRUE(CollectGarbage(cluster_, store_, {.age_seconds = 10, .jobs_folder = root_ + "/jobs"},
                             cluster_.clock()));
  EXPECT_TRUE(Stored(kept));
  ASSERT_TRUE(CollectGarbage(cluster_, store_, {.age_seconds = 10}, cluster_.clock()));
  EXPECT_FALSE(Stored(kept));
}

// One that answers about three jobs at most, as an engine does about those with very long specs.
class TerseCluster : public FakeCluster {
 public:
  TerseCluster() : FakeCluster("fake", Machine{.host = "fake", .cpus = 4, .mem_bytes = 0, .gpus = {}}) {}
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) override {
    if (ids.size() > 3) return Fail(ErrorCode::kUsage, "the reply would be larger than 16.0 MiB");
    return FakeCluster::Query(ids);
  }
};

TEST(RemoveJobs, ManyJobsAreRemovedInParts) {
  TerseCluster cluster;
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    JobSpec spec;
    spec.id = StrCat("a_1_", 10'000'000 + i);
    spec.command = {"true"};
    spec.workdir = "/tmp";
    ASSERT_TRUE(cluster.Submit({spec, ""}));
    ids.push_back(spec.id);
  }
  ASSERT_TRUE(cluster.Wait(ids, WaitUntil::kEnded, 1000));
  const auto removed = RemoveJobs(cluster, ids);
  ASSERT_TRUE(removed) << removed.error().message;
  for (const std::string& id : ids) EXPECT_FALSE(cluster.Query({id})) << id;
}

TEST_F(GcTest, ADryRunRemovesNothing) {
  Submit("a_1_00000001", {"true"}, Put("x"));
  ASSERT_TRUE(cluster_.Query({"a_1_00000001"}));
  cluster_.clock().Advance(1000 * kSecond);
  const auto report =
      CollectGarbage(cluster_, store_, {.age_seconds = 10, .dry_run = true}, cluster_.clock());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->jobs.size(), 1u);
  EXPECT_TRUE(cluster_.Query({"a_1_00000001"}));
}

TEST_F(GcTest, FolderBytesLeavesSharedFilesOut) {
  std::filesystem::create_directories(root_ + "/job/code");
  std::ofstream(root_ + "/object") << std::string(8192, 'x');
  std::filesystem::create_hard_link(root_ + "/object", root_ + "/job/code/file");
  EXPECT_EQ(FolderBytes(root_ + "/job"), 0);
  std::ofstream(root_ + "/job/rank-0.log") << std::string(8192, 'x');
  EXPECT_EQ(FolderBytes(root_ + "/job"), 8192);
}

}  // namespace
}  // namespace overcap
