// SPDX-License-Identifier: Apache-2.0
#include "snapshot/materialise.h"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "snapshot/capture.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/code_pin.h"
#include "snapshot/repository/testing/sample_repository.h"
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

  std::vector<std::string> Packs(char kind) {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(store_.Folder() + "/packs")) {
      if (!entry.is_regular_file()) continue;
      char head[9] = {};
      std::ifstream(entry.path(), std::ios::binary).read(head, sizeof head);
      if (head[8] == kind) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return fs::last_write_time(a) < fs::last_write_time(b); });
    return found;
  }
  // Oldest first.
  std::vector<std::string> DataPacks() { return Packs('d'); }
  std::vector<std::string> MetaPacks() { return Packs('m'); }

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

// Changes one bit; in a pack it is in the first block.
void Alter(const std::string& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(kPackHeadSize + 5);
  const char changed = static_cast<char>(stream.peek() ^ 1);
  stream.seekp(kPackHeadSize + 5).put(changed);
}

TEST_F(MaterialiseTest, NamesPathAndChunkOfDamageLeavesNothingAndTheNextCaptureHealsIt) {
  const std::vector<std::function<void(const std::string&)>> harms = {
      [](const std::string& pack) { Alter(pack); },
      [](const std::string& pack) { fs::resize_file(pack, 100); },
      [](const std::string& pack) { fs::remove(pack); },
  };
  for (const auto& harm : harms) {
    harm(DataPacks().back());
    const size_t entries = EntriesOf(temp_.Path());
    const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
    const std::string& message = report.error().message;
    bool named = false;
    for (const auto& [path, content] : {std::pair("'main.py'", std::string("print(1)\n")),
                                        std::pair("'bin/run'", std::string("#!/bin/sh\n")),
                                        std::pair("'large'", std::string(300'000, 'x'))}) {
      named =
          named || (message.find(path) != std::string::npos &&
                    (message.find(Sha256Of(content).Hex()) != std::string::npos || content.size() > 262'144));
    }
    EXPECT_TRUE(named) << message;
    EXPECT_EQ(EntriesOf(temp_.Path()), entries);
    EXPECT_TRUE(fs::is_empty(store_.LocalFolder() + "/tmp"));
    ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
    ASSERT_TRUE(Materialise(store_, tree_, temp_ / "copy")) << "the next capture has healed it";
    EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
    fs::remove_all(temp_ / "copy");
  }
}

TEST_F(MaterialiseTest, RefusesAnAlteredTreeAndTheNextCaptureHealsIt) {
  for (const std::string& pack : MetaPacks()) Alter(pack);
  EXPECT_EQ(Materialise(store_, tree_, temp_ / "copy").error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(fs::exists(temp_ / "copy"));
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
}

TEST_F(MaterialiseTest, ACaptureHealsAnAlteredTreeThatNobodyHasReadYet) {
  for (const std::string& pack : MetaPacks()) Alter(pack);
  fs::remove_all(store_.LocalFolder() + "/captures");
  fs::create_directories(store_.LocalFolder() + "/captures");
  ASSERT_EQ(Capture(store_, src_)->tree_id, tree_);
  EXPECT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
}

TEST_F(MaterialiseTest, MakesNoSpareOfAlteredCode) {
  for (const std::string& pack : DataPacks()) Alter(pack);
  const Result<void> prepared = PrepareSpare(store_, tree_);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(CountSpares(store_, *Digest::FromHex(tree_)), 0);
  EXPECT_TRUE(fs::is_empty(store_.LocalFolder() + "/tmp"));
}

TEST_F(MaterialiseTest, FindsItsChunksInOtherPacksWhenThoseOfThePinAreGoneOrThePinIsDamaged) {
  PutFile(src_ + "/more", NoiseBytes(1, 100'000));
  ASSERT_TRUE(Capture(store_, src_));
  fs::remove_all(src_);
  const std::vector<std::string> before = DataPacks();
  ASSERT_TRUE(store_.Collect({tree_}, {}, 0)) << "little of the packs is used: they are written again";
  EXPECT_NE(DataPacks(), before);
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "copy"));
  Alter(store_.Folder() + "/code/" + tree_);
  ASSERT_TRUE(Materialise(store_, tree_, temp_ / "again"));
  EXPECT_EQ(Describe(temp_ / "again"), Describe(temp_ / "copy"));
}

TEST_F(MaterialiseTest, NeverLeavesItsTarget) {
  // A tree that no builder makes: the folder itself, then an entry above it.
  std::string page("T\0\2", 3);
  page += std::string("\0\0d\0\0\0\0\0\0", 9);
  page += std::string("\0\7../evil", 9) + std::string("d\0\0\0\0\0\0", 7);
  const Result<std::unique_ptr<ChunkWriter>> writer = ChunkWriter::Start(store_.repository());
  const auto lane = (*writer)->NewLane();
  const Result<AddedChunk> added = lane->Add(ChunkKind::kMeta, page);
  ASSERT_TRUE(lane->Flush());
  ASSERT_TRUE((*writer)->Finish());
  ASSERT_TRUE(store_.repository().store().Put("code/" + added->id.Hex(), EncodeCodePin({})));
  const Result<MaterialiseReport> report = Materialise(store_, added->id.Hex(), temp_ / "copy");
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(fs::exists(temp_ / "copy"));
  EXPECT_FALSE(fs::exists(temp_ / "evil"));
}

TEST_F(MaterialiseTest, TakesASpareWithoutCopying) {
  ASSERT_TRUE(PrepareSpare(store_, tree_));
  const Result<MaterialiseReport> report = Materialise(store_, tree_, temp_ / "copy");
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->from_spare);
  EXPECT_EQ(Describe(temp_ / "copy"), Describe(src_));
  EXPECT_FALSE(Materialise(store_, tree_, temp_ / "next")->from_spare) << "there was one only";
  EXPECT_TRUE(fs::is_empty(store_.LocalFolder() + "/tmp"));
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
    for (const auto& spare : fs::directory_iterator(store_.LocalFolder() + "/" + SpareFolder())) {
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
  PutFile(store_.LocalFolder() + "/tmp/spare-1/main.py", "half");
  PutFile(store_.LocalFolder() + "/spare/another-boot/" + tree_ + "-0/main.py", "never synced");
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
    }
  }
}

}  // namespace
}  // namespace overcap
