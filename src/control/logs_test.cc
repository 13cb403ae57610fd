// SPDX-License-Identifier: Apache-2.0
#include "control/logs.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"
#include "clusters/fake/fake_cluster.h"
#include "control/node_logs.h"

namespace overcap {
namespace {

constexpr char kId[] = "ann_1_00000001";

class LogsTest : public testing::Test {
 protected:
  LogsTest() : cluster_("fake", Machine{.host = "fake", .cpus = 4, .mem_bytes = 0, .gpus = {}}) {}

  void SetUp() override {
    char folder[] = "/tmp/overcap_logs_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    JobSpec spec;
    spec.id = kId;
    spec.command = {"sleep", "10"};
    spec.resources.ranks_per_node = 2;
    ASSERT_TRUE(cluster_.Submit({spec, ""}));
    std::vector<LogFile> logs;
    for (int rank = 0; rank < 2; ++rank) logs.push_back({1, rank, -1, Path(rank)});
    cluster_.SetJobFolder(kId, folder_, logs);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(int rank) { return StrCat(folder_, "/rank-", rank, ".log"); }
  void Append(int rank, const std::string& text) { std::ofstream(Path(rank), std::ios::app) << text; }
  JobRecord Record() { return cluster_.Query({kId})->front(); }
  std::string Print(const LogRequest& request) {
    std::string shown;
    const auto printed = PrintLogs(Record(), request, [&](std::string_view bytes) { shown += bytes; });
    return printed ? shown : printed.error().message;
  }

  FakeCluster cluster_;
  std::string folder_;
};

TEST_F(LogsTest, OneRankComesByteForByte) {
  Append(0, "a\0b");
  Append(1, "other\n");
  EXPECT_EQ(Print({}), "a\0b");
}

TEST_F(LogsTest, SeveralRanksAreNamedInFrontOfEachLine) {
  Append(0, "a\nb");
  Append(1, "c\n");
  EXPECT_EQ(Print({.ranks = {}}), "[0] a\n[0] b\n[1] c\n");
}

TEST_F(LogsTest, TailHoldsForEachRank) {
  Append(0, "a\nb\n");
  Append(1, "c\nd\n");
  EXPECT_EQ(Print({.ranks = {}, .tail = 1}), "[0] b\n[1] d\n");
}

TEST_F(LogsTest, ARankThatIsNotThereIsNamed) {
  const auto logs = SelectLogs(Record(), {.ranks = {0, 5}});
  ASSERT_FALSE(logs);
  EXPECT_EQ(logs.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(logs.error().hint, "it has ranks 0 to 1 and attempts 1 to 1");
}

TEST_F(LogsTest, FollowingShowsWhatIsAddedUntilTheEnd) {
  Append(0, "first\n");
  std::string shown;
  int pauses = 0;
  const auto pause = [&](int64_t) {
    Append(0, StrCat("line ", ++pauses, "\n"));
    if (pauses == 3) cluster_.clock().Advance(20'000'000);
  };
  const auto last = FollowLogs(
      cluster_, kId, {}, [&](std::string_view bytes) { shown += bytes; }, [](int) {}, pause);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->state, JobState::kSucceeded);
  EXPECT_EQ(shown, "first\nline 1\nline 2\nline 3\n");
}

TEST_F(LogsTest, NodesOfAnElasticJobAreFollowedAsTheyCome) {
  JobSpec spec;
  spec.id = "ann_1_00000002";
  spec.command = {"sleep", "10"};
  spec.resources.max_nodes = 3;
  ASSERT_TRUE(cluster_.Submit({spec, ""}));
  cluster_.SetJobFolder(spec.id, folder_, {});
  std::filesystem::create_directory(folder_ + "/attempt-1");
  const auto append = [&](int node, const std::string& text) {
    std::ofstream(StrCat(folder_, "/attempt-1/rank-", node, ".log"), std::ios::app) << text;
  };
  int pauses = 0;
  const auto pause = [&](int64_t) {
    if (++pauses == 1) append(0, "of node 0\n");
    if (pauses == 2) append(2, "of node 2\n");
    if (pauses == 3) cluster_.clock().Advance(20'000'000);
  };
  std::string shown;
  const auto sink = [&](std::string_view bytes) { shown += bytes; };
  const auto last = FollowLogs(
      cluster_, spec.id, {.ranks = {}}, sink, [](int) {}, pause);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(shown, "[0] of node 0\n[2] of node 2\n");
  const auto none = FollowLogs(
      cluster_, spec.id, {.ranks = {1}}, sink, [](int) {}, pause);
  ASSERT_FALSE(none) << "it has ended, and there is no node 1";
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

TEST_F(LogsTest, NodesWhoseLogsAreInAStoreAreKnownByTheirClaims) {
  JobRecord record;
  record.spec.resources.max_nodes = 3;
  record.spec.store.at = "/nowhere";
  record.dir = folder_;
  record.attempt = 1;
  std::filesystem::create_directory(folder_ + "/attempt-1");
  for (const char* name : {"agent-0.jsonl", "agent-0.claim", "agent-0.node-2.claim", "agent-0.group.jsonl",
                           "agent-0.node-x.claim"})
    std::ofstream(StrCat(folder_, "/attempt-1/", name));
  AddNodeLogs(&record);
  ASSERT_EQ(record.logs.size(), 2u);
  EXPECT_EQ(record.logs[0].rank, 0);
  EXPECT_EQ(record.logs[1].path, folder_ + "/attempt-1/rank-2.log");
}

TEST_F(LogsTest, FollowingAnEndedJobShowsAllOfIt) {
  Append(0, "all\nof it");
  ASSERT_EQ(Record().state, JobState::kRunning);
  cluster_.clock().Advance(20'000'000);
  std::string shown;
  const auto last = FollowLogs(
      cluster_, kId, {}, [&](std::string_view bytes) { shown += bytes; }, [](int) {},
      [](int64_t) { FAIL() << "there is nothing to wait for"; });
  ASSERT_TRUE(last);
  EXPECT_EQ(shown, "all\nof it");
}

}  // namespace
}  // namespace overcap
