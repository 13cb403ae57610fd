// SPDX-License-Identifier: Apache-2.0
#include "snapshot/materialise.h"

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "snapshot/capture.h"
#include "snapshot/object_batch.h"
#include "snapshot/spare.h"
#include "snapshot/testing/sample_folder.h"
#include "sys/random.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

class MaterialiseTest : public testing::Test {
 protected:
  MaterialiseTest() : store_(OpenTestStore(temp_, &clock_)), src_(temp_ / "src") {
    PutFile(src_ + "/main.py", "print(1)\n");
    PutFile(src_ + "/bin/run", "#!/bin/sh\n", true);
    PutFile(src_ + "/large", std::string(300'000, 'x'));
    fs::create_symlink("bin/run", src_ + "/link");
    fs::create_directories(src_ + "/empty/deeper");
    tree_ = Capture(store_, src_)->tree_id;
  }

  size_t EntriesOf(const std::string& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  const TempFolder temp_;
  OffsetClock clock_;
  SnapshotStore store_;
  const std::string src_;
  std::string tree_;
};

TEST_F(MaterialiseTest, MakesTheSameFolderAgain) {
  const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
  EXPECT_EQ(report->files, 4);
  struct stat status;
  ASSERT_EQ(lstat((temp_ / "copy/bin/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(lstat((temp_ / "copy/main.py").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(MaterialiseTest, IsNotChangedByEditsAfterTheCapture) {
  const auto before = Describe(src_);
  PutFile(src_ + "/main.py", "print(2)\n");
  fs::remove(src_ + "/large");
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
  EXPECT_EQ(Describe(temp_ / "copy"), before);
}

TEST_F(MaterialiseTest, GivesEachCallerItsOwnFiles) {
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "first"));
  for (const char* file : {"first/main.py", "first/large"}) {
    std::ofstream(temp_ / file, std::ios::in | std::ios::out) << "overwritten in place";
  }
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "second"));
  EXPECT_EQ(Describe(temp_ / "second"), Describe(src_));
}

TEST_F(MaterialiseTest, SharesFilesOnlyWhenAsked) {
  MaterialiseOptions options;
  options.hard_links = true;
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "copy", options));
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
  EXPECT_EQ(fs::hard_link_count(temp_ / "copy/main.py"), 2u);
  EXPECT_EQ(fs::hard_link_count(temp_ / "copy/bin/run"), 1u) << "executables have another mode than objects";
}

TEST_F(MaterialiseTest, StopsBetweenFilesWhenItIsCancelledAndLeavesNothing) {
  const std::string folder = temp_ / "job";
  fs::create_directories(folder);
  int asked = 0;
  MaterialiseOptions options;
  options.cancelled = [&] { return ++asked == 3; };
  const auto report = Materialise(store_, tree_, folder + "/copy", options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConflict);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(EntriesOf(folder), 0u);
}

TEST_F(MaterialiseTest, RefusesATargetThatExists) {
  fs::create_directories(temp_ / "there");
  EXPECT_EQ(Materialise(store_, tree_, temp_ / "there").error().code, ErrorCode::kConflict);
  ASSERT_TRUE(PrepareSpare(store_, tree_));
  EXPECT_EQ(Materialise(store_, tree_, temp_ / "there").error().code, ErrorCode::kConflict);
  EXPECT_TRUE(fs::is_empty(temp_ / "there"));
  EXPECT_EQ(CountSpares(store_, *Digest::FromHex(tree_)), 1) << "the spare is still there";
}

TEST_F(MaterialiseTest, SaysWhatIsNotThere) {
  EXPECT_EQ(Materialise(store_, "zzz", temp_ / "copy").error().code, ErrorCode::kUsage);
  EXPECT_EQ(Materialise(store_, Sha256Of("no tree").Hex(), temp_ / "copy").error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(Materialise(store_, tree_, temp_ / "no/such/folder/copy").error().code, ErrorCode::kNotFound);
}

TEST_F(MaterialiseTest, NamesPathAndObjectOfDamageAndLeavesNothing) {
  const std::string id = Sha256Of("print(1)\n").Hex();
  const std::string object = StoredFile(store_, ObjectKind::kContent, id);
  const size_t entries = EntriesOf(temp_.Path());
  ASSERT_EQ(truncate(object.c_str(), 3), 0);
  for (const char* what : {"damaged", "missing"}) {
    const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(report.error().message.find("'main.py'"), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find(id), std::string::npos);
    EXPECT_NE(report.error().message.find(what), std::string::npos);
    EXPECT_EQ(EntriesOf(temp_.Path()), entries);
    fs::remove(object);
  }
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(Materialise(store_, tree_, temp_ / "copy")) << "the next capture has healed it";
}

// Changes one bit and nothing else that could be seen without reading it.
void Alter(const std::string& file) {
  struct stat before;
  ASSERT_EQ(stat(file.c_str(), &before), 0);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  const char first = static_cast<char>(stream.peek() ^ 1);
  stream.seekp(0).put(first);
  stream.close();
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

TEST_F(MaterialiseTest, RefusesAlteredObjectsAndTheNextCaptureHealsThem) {
  const std::pair<const char*, std::string> altered[] = {
      {"main.py", "print(1)\n"},             // small
      {"bin/run", "#!/bin/sh\n"},            // executable
      {"large", std::string(300'000, 'x')},  // by blocks
      {"link", "bin/run"},                   // the target of a link
  };
  for (const auto& [path, content] : altered) {
    for (const bool hard_links : {false, true}) {
      const std::string id = Sha256Of(content).Hex();
      const std::string object = StoredFile(store_, ObjectKind::kContent, id);
      Alter(object);
      const size_t entries = EntriesOf(temp_.Path());
      MaterialiseOptions options;
      options.hard_links = hard_links;
      const Result<MaterialiseReport> copied = Materialise(store_, tree_, temp_ / "copy", options);
      ASSERT_FALSE(copied);
      const Error& error = copied.error();
      EXPECT_EQ(error.code, ErrorCode::kCorrupt);
      EXPECT_NE(error.message.find(std::string("'") + path + "'"), std::string::npos) << error.message;
      EXPECT_NE(error.message.find(id), std::string::npos) << error.message;
      EXPECT_FALSE(fs::exists(object)) << "it is not what its name says";
      EXPECT_EQ(EntriesOf(temp_.Path()), entries);
      EXPECT_TRUE(fs::is_empty(store_.Folder() + "/tmp"));
      ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
      ASSERT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
      EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
      fs::remove_all(temp_ / "copy");
    }
  }
}

TEST_F(MaterialiseTest, FindsOneAlteredObjectAmongMany) {
  for (int i = 0; i < 300; ++i) PutFile(src_ + "/many/" + std::to_string(i), "file " + std::to_string(i));
  const std::string tree = Capture(store_, src_)->tree_id;
  for (const char* content : {"file 0", "file 150", "file 299"}) {
    Alter(StoredFile(store_, ObjectKind::kContent, Sha256Of(content).Hex()));
    EXPECT_EQ(Materialise(store_, tree, temp_ / "copy").error().code, ErrorCode::kCorrupt) << content;
    ASSERT_EQ(Capture(store_, src_)->tree_id, tree);
  }
  ASSERT_TRUE(Materialise(store_, tree, temp_ / "copy"));
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
}

TEST_F(MaterialiseTest, MakesNoSpareOfAlteredObjects) {
  const std::string object = StoredFile(store_, ObjectKind::kContent, Sha256Of("print(1)\n").Hex());
  Alter(object);
  const Result<void> prepared = PrepareSpare(store_, tree_);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(CountSpares(store_, *Digest::FromHex(tree_)), 0);
  EXPECT_TRUE(fs::is_empty(store_.Folder() + "/tmp"));
  EXPECT_FALSE(fs::exists(object));
}

TEST_F(MaterialiseTest, RefusesAnAlteredTreeAndTheNextCaptureHealsIt) {
  Alter(StoredFile(store_, ObjectKind::kTree, tree_));
  EXPECT_EQ(Materialise(store_, tree_, temp_ / "copy").error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(fs::exists(temp_ / "copy"));
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
}

TEST_F(MaterialiseTest, VerifyMakesTheNextCaptureHealWhatItFound) {
  Alter(StoredFile(store_, ObjectKind::kContent, Sha256Of("print(1)\n").Hex()));
  ASSERT_EQ(store_.Verify(tree_)->damage.size(), 1u);
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(store_.Verify(tree_)->damage.empty());
  Alter(StoredFile(store_, ObjectKind::kTree, tree_));
  EXPECT_EQ(store_.Verify(tree_).error().code, ErrorCode::kCorrupt);
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(store_.Verify(tree_)->damage.empty());
}

TEST_F(MaterialiseTest, NeverLeavesItsTarget) {
  ObjectBatch batch(store_);
  const Result<StoredObject> stored =
      batch.AddBytes(std::string("overcap tree 1\nd ../../evil\0", 28), ObjectKind::kTree);
  ASSERT_TRUE(batch.Commit());
  const Result<MaterialiseReport> report = Materialise(store_, stored->id.Hex(), temp_ / "copy");
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(fs::exists(temp_ / "copy"));
  EXPECT_TRUE(fs::exists(StoredFile(store_, ObjectKind::kTree, stored->id.Hex()))) << "as it was stored";
}

TEST_F(MaterialiseTest, TakesASpareWithoutCopying) {
  ASSERT_TRUE(PrepareSpare(store_, tree_));
  const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->from_spare);
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
  EXPECT_FALSE(Materialise(store_, tree_, temp_ / "next")->from_spare) << "there was one only";
  EXPECT_TRUE(fs::is_empty(store_.Folder() + "/tmp"));
}

TEST_F(MaterialiseTest, GivesEachOfManyTakersACompleteFolder) {
  ASSERT_TRUE(PrepareSpare(store_, tree_, 3));
  std::atomic<int> spares = 0;
  std::vector<std::thread> takers;
  for (int i = 0; i < 6; ++i) {
    takers.emplace_back([&, i] {
      const Result<MaterialiseReport> report =
          Materialise(store_, tree_, temp_ / ("copy" + std::to_string(i)));
      ASSERT_TRUE(report) << report.error().message;
      spares += report->from_spare ? 1 : 0;
    });
  }
  for (std::thread& taker : takers) taker.join();
  EXPECT_EQ(spares, 3);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Describe(temp_ / ("copy" + std::to_string(i))), Describe(src_));
}

TEST_F(MaterialiseTest, KeepsSparesOfTwoTreesOnly) {
  std::vector<Digest> trees;
  for (int i = 0; i < 3; ++i) {
    PutFile(src_ + "/main.py", std::to_string(i));
    trees.push_back(*Digest::FromHex(Capture(store_, src_)->tree_id));
    ASSERT_TRUE(PrepareSpare(store_, trees.back().Hex(), 9));
    // The time of the next must be later, however coarse the clock of the file system.
    const timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};
    for (const auto& spare : fs::directory_iterator(store_.Folder() + "/" + SpareFolder())) {
      if (spare.path().filename().string().rfind(trees.back().Hex(), 0) == 0) {
        utimensat(AT_FDCWD, spare.path().c_str(), old, 0);
      }
    }
  }
  EXPECT_EQ(CountSpares(store_, trees[0]), 0);
  EXPECT_EQ(CountSpares(store_, trees[1]), kMaxSpares);
  EXPECT_EQ(CountSpares(store_, trees[2]), kMaxSpares);
}

TEST_F(MaterialiseTest, NeverTakesAnUnfinishedSpareOrOneOfAnotherBoot) {
  PutFile(store_.Folder() + "/tmp/spare-1/main.py", "half");
  PutFile(store_.Folder() + "/spare/another-boot/" + tree_ + "-0/main.py", "never synced");
  const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
  EXPECT_FALSE(report->from_spare);
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
}

// A random folder: nested, with odd names, empty folders, links, executables and contents of many sizes.
class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  void Fill(const std::string& folder, int depth) {
    fs::create_directories(folder);
    for (uint64_t i = random_.Below(depth == 0 ? 12 : 6); i > 0; --i) AddOne(folder, depth);
  }

  // Changes, adds and removes some files.
  void Stir(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
    }
    for (const std::string& file : files) {
      const uint64_t dice = random_.Below(4);
      if (dice == 0) fs::remove(file);
      if (dice == 1) PutFile(file, Content(), random_.Below(2) == 0);
    }
    Fill(folder, 1);
  }

 private:
  void AddOne(const std::string& folder, int depth) {
    const std::string path = folder + "/" + Name();
    if (fs::exists(fs::symlink_status(path))) return;
    switch (random_.Below(6)) {
      case 0:
      case 1:
        if (depth < 4) return Fill(path, depth + 1);
        fs::create_directories(path);
        return;
      case 2:
        fs::create_symlink(random_.Below(2) == 0 ? Name() : "../" + Name(), path);
        return;
      default:
        PutFile(path, Content(), random_.Below(3) == 0);
    }
  }

  std::string Name() {
    static const char* const kNames[] = {"a",   "b",  "a-b", "a.b", "A", "\xff\x01",
                                         "x y", "\n", "z",   "aa",  "~", "0"};
    return std::string(kNames[random_.Below(12)]) + kNames[random_.Below(12)];
  }

  std::string Content() {
    const uint64_t sizes[] = {0, 1, 100, 5000, 70'000, 1'100'000};
    return std::string(sizes[random_.Below(random_.Below(10) == 0 ? 6 : 4)],
                       static_cast<char>('a' + random_.Below(26)));
  }

  SeededRandom random_;
};

TEST(Snapshot, OfARandomFolderIsThatFolder) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    const TempFolder temp;
    const SnapshotStore store = OpenTestStore(temp);
    Maker maker(seed);
    maker.Fill(temp / "src", 0);
    std::vector<std::pair<std::string, std::map<std::string, std::string>>> taken;
    for (int round = 0; round < 4; ++round) {
      const Result<CaptureReport> report = Capture(store, temp / "src");
      ASSERT_TRUE(report) << report.error().message;
      taken.emplace_back(report->tree_id, Describe(temp / "src"));
      maker.Stir(temp / "src");
    }
    for (size_t i = 0; i < taken.size(); ++i) {
      const std::string copy = temp / ("copy" + std::to_string(i));
      ASSERT_TRUE(Materialise(store, taken[i].first, copy));
      ASSERT_EQ(Describe(copy), taken[i].second) << "seed " << seed << ", round " << i;
      ASSERT_EQ(Capture(store, copy)->tree_id, taken[i].first) << "seed " << seed << ", round " << i;
      ASSERT_TRUE(store.Verify(taken[i].first)->damage.empty());
    }
  }
}

}  // namespace
}  // namespace overcap
