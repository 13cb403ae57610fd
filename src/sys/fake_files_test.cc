// SPDX-License-Identifier: Apache-2.0
#include "sys/fake_files.h"

#include <functional>
#include <gtest/gtest.h>
#include <set>

namespace overcap {
namespace {

constexpr int kSeeds = 200;

// What `path` may hold after `act` and a power cut, over many seeds.
std::set<std::string> AfterPowerCuts(const std::function<void(FakeFiles*)>& act, const std::string& path) {
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    FakeFiles files(static_cast<uint64_t>(seed));
    act(&files);
    files.Crash(CrashKind::kPowerCut);
    outcomes.insert(files.Read(path).value_or("<gone>"));
  }
  return outcomes;
}

using Outcomes = std::set<std::string>;

TEST(FakeFilesTest, AProcessCrashKeepsEverythingButEndsOpenFiles) {
  FakeFiles files;
  auto file = files.OpenAppend("/a").value();
  ASSERT_TRUE(file->Append("unsynced"));
  files.Crash(CrashKind::kProcess);
  EXPECT_EQ(files.Read("/a").value(), "unsynced");
  EXPECT_FALSE(file->Append("x"));
  EXPECT_FALSE(file->Sync());
}

TEST(FakeFilesTest, APowerCutKeepsTheSyncedBytesAndAnyPartOfTheTail) {
  const auto act = [](FakeFiles* files) {
    auto file = files->OpenAppend("/a").value();
    ASSERT_TRUE(files->SyncFolder("/"));
    ASSERT_TRUE(file->Append("12"));
    ASSERT_TRUE(file->Sync());
    ASSERT_TRUE(file->Append("34"));
  };
  EXPECT_EQ(AfterPowerCuts(act, "/a"), (Outcomes{"12", "123", "1234"}));
}

TEST(FakeFilesTest, APowerCutMayLoseAFileWhoseFolderWasNotSynced) {
  const auto act = [](FakeFiles* files) {
    auto file = files->OpenAppend("/a").value();
    ASSERT_TRUE(file->Append("1"));
    ASSERT_TRUE(file->Sync());
  };
  EXPECT_EQ(AfterPowerCuts(act, "/a"), (Outcomes{"1", "<gone>"}));
}

TEST(FakeFilesTest, APowerCutMayUndoARenameAndARemoval) {
  const auto rename = [](FakeFiles* files) {
    ASSERT_TRUE(files->WriteAtomic("/a", "old", true));
    ASSERT_TRUE(files->WriteAtomic("/b", "new", true));
    ASSERT_TRUE(files->Rename("/b", "/a"));
  };
  EXPECT_EQ(AfterPowerCuts(rename, "/a"), (Outcomes{"old", "new"}));
  EXPECT_EQ(AfterPowerCuts(rename, "/b"), (Outcomes{"new", "<gone>"}));
  const auto remove = [](FakeFiles* files) {
    ASSERT_TRUE(files->WriteAtomic("/a", "old", true));
    ASSERT_TRUE(files->Remove("/a"));
  };
  EXPECT_EQ(AfterPowerCuts(remove, "/a"), (Outcomes{"old", "<gone>"}));
}

TEST(FakeFilesTest, ADurableWriteSurvivesEveryPowerCut) {
  const auto act = [](FakeFiles* files) {
    ASSERT_TRUE(files->WriteAtomic("/a", "old", true));
    ASSERT_TRUE(files->WriteAtomic("/a", "new", true));
  };
  EXPECT_EQ(AfterPowerCuts(act, "/a"), Outcomes{"new"});
}

TEST(FakeFilesTest, APowerCutMayBringBackATruncatedTailUntilTheNextSync) {
  const auto truncate = [](FakeFiles* files, bool sync) {
    auto file = files->OpenAppend("/a").value();
    ASSERT_TRUE(files->SyncFolder("/"));
    ASSERT_TRUE(file->Append("12"));
    ASSERT_TRUE(file->Sync());
    ASSERT_TRUE(file->TruncateTo(1));
    if (sync) {
      ASSERT_TRUE(file->Sync());
    }
  };
  EXPECT_EQ(AfterPowerCuts([&](FakeFiles* files) { truncate(files, false); }, "/a"), (Outcomes{"1", "12"}));
  EXPECT_EQ(AfterPowerCuts([&](FakeFiles* files) { truncate(files, true); }, "/a"), Outcomes{"1"});
}

TEST(FakeFilesTest, TheSameSeedGivesTheSameCrash) {
  std::string outcomes[2];
  for (std::string& outcome : outcomes) {
    FakeFiles files(42);
    ASSERT_TRUE(files.OpenAppend("/a").value()->Append(std::string(1000, 'x')));
    ASSERT_TRUE(files.SyncFolder("/"));
    files.Crash(CrashKind::kPowerCut);
    outcome = files.Read("/a").value();
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST(FakeFilesTest, AFailedAppendLeavesAPartThatCanBeCutOff) {
  FakeFiles files;
  auto file = files.OpenAppend("/a").value();
  ASSERT_TRUE(file->Append("good"));
  files.FailWrites(1);
  EXPECT_EQ(file->Append("torn record").error().code, ErrorCode::kUnavailable);
  EXPECT_LT(file->Size(), 15);
  ASSERT_TRUE(file->TruncateTo(4));
  EXPECT_TRUE(file->Append("!"));
  EXPECT_EQ(files.Read("/a").value(), "good!");
}

TEST(FakeFilesTest, AFullDiskTakesWhatFitsAndRefusesWholeFiles) {
  FakeFiles files;
  auto file = files.OpenAppend("/a").value();
  files.SetFreeBytes(3);
  EXPECT_EQ(files.WriteAtomic("/b", "12345", true).error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(files.Exists("/b"));
  EXPECT_FALSE(file->Append("12345"));
  EXPECT_EQ(files.Read("/a").value(), "123");
  files.SetFreeBytes(std::nullopt);
  EXPECT_TRUE(file->Append("4"));
}

TEST(FakeFilesTest, AFailedSyncMakesNothingDurable) {
  const auto act = [](FakeFiles* files) {
    auto file = files->OpenAppend("/a").value();
    ASSERT_TRUE(files->SyncFolder("/"));
    ASSERT_TRUE(file->Append("1"));
    files->FailSyncs(1);
    ASSERT_FALSE(file->Sync());
  };
  EXPECT_EQ(AfterPowerCuts(act, "/a"), (Outcomes{"", "1"}));
}

TEST(FakeFilesTest, ADyingProgramChangesNothingAfterItsLastChange) {
  FakeFiles files;
  auto file = files.OpenAppend("/a").value();
  files.DieAfter(1);
  EXPECT_TRUE(file->Append("1"));
  EXPECT_TRUE(files.Dead());
  EXPECT_FALSE(file->Append("2"));
  EXPECT_FALSE(files.WriteAtomic("/b", "", false));
  EXPECT_FALSE(files.OpenAppend("/a"));
  files.Crash(CrashKind::kProcess);
  EXPECT_EQ(files.Read("/a").value(), "1");
  EXPECT_TRUE(files.OpenAppend("/b"));
}

}  // namespace
}  // namespace overcap
