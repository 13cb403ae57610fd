// SPDX-License-Identifier: Apache-2.0
#include "snapshot/capture.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "snapshot/capture_index.h"
#include "snapshot/code_tree.h"
#include "snapshot/materialise.h"
#include "snapshot/testing/sample_folder.h"
#include "stores/all_stores.h"
#include "stores/testing/fault_store.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() : store_(OpenTestStore(temp_, &clock_)), src_(temp_ / "src") { fs::create_directories(src_); }

  CaptureReport Take(const CaptureOptions& options = {}) {
    Result<CaptureReport> report = Capture(store_, src_, options);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : CaptureReport{};
  }

  std::vector<CodeEntry> EntriesOf(const std::string& tree_id) {
    const auto entries =
        WithCodeTree(store_, tree_id, [](const CodeTree& tree, bool) { return tree.Entries(); });
    EXPECT_TRUE(entries) << entries.error().message;
    return entries.value_or(std::vector<CodeEntry>());
  }

  std::vector<std::string> PathsOf(const std::string& tree_id) {
    std::vector<std::string> paths;
    for (const CodeEntry& entry : EntriesOf(tree_id)) paths.push_back(entry.path);
    return paths;
  }

  // "" when all of it can be read and is what was stored.
  std::string Damage(const std::string& tree_id) {
    const TempFolder copies;
    const Result<MaterialiseReport> copied = Materialise(store_, tree_id, copies / "copy");
    return copied ? "" : copied.error().message;
  }

  std::string OnlyIndex() { return fs::directory_iterator(store_.LocalFolder() + "/captures")->path(); }

  const TempFolder temp_;
  OffsetClock clock_;
  SnapshotStore store_;
  const std::string src_;
};

using Paths = std::vector<std::string>;

TEST_F(CaptureTest, GivesTheIdOfTheFormatDocument) {
  PutFile(src_ + "/a b", "hello\n");
  PutFile(src_ + "/bin/run", "", true);
  fs::create_symlink("bin/run", src_ + "/bin-link");
  fs::create_directories(src_ + "/empty");
  EXPECT_EQ(Take().tree_id, "9f5373230b5b02e7eda9c426e415764d6c83d806b97bca82836ff45906c3ef5d");
}

TEST_F(CaptureTest, CapturesAnEmptyFolder) {
  const CaptureReport report = Take();
  EXPECT_EQ(report.files, 0);
  EXPECT_EQ(PathsOf(report.tree_id), Paths{});
  EXPECT_EQ(Take().tree_id, report.tree_id);
}

TEST_F(CaptureTest, LeavesOutIgnoredFilesGitAndTheRoot) {
  PutFile(src_ + "/.gitignore", "*.log\n/out/\n");
  PutFile(src_ + "/.overcapignore", "data/\n!keep.log\n");
  PutFile(src_ + "/.git/HEAD", "ref");
  PutFile(src_ + "/sub/.git", "gitdir: elsewhere");
  PutFile(src_ + "/a.log", "");
  PutFile(src_ + "/keep.log", "");
  PutFile(src_ + "/out/x", "");
  PutFile(src_ + "/sub/out/x", "");
  PutFile(src_ + "/data/big", "");
  PutFile(src_ + "/state/jobs/x", "");
  CaptureOptions options;
  options.root = src_ + "/state";
  EXPECT_EQ(PathsOf(Take(options).tree_id),
            (Paths{".gitignore", ".overcapignore", "keep.log", "sub", "sub/out", "sub/out/x"}));
}

TEST_F(CaptureTest, LeavesOutItsOwnStoreByItself) {
  const Result<SnapshotStore> inside = SnapshotStore::Open(src_ + "/.overcap/store");
  PutFile(src_ + "/main.py", "");
  const Result<CaptureReport> report = Capture(*inside, src_);
  EXPECT_EQ(report->files, 1);
  EXPECT_EQ(Capture(*inside, src_ + "/.overcap").error().code, ErrorCode::kUsage);
}

TEST_F(CaptureTest, ReadsNothingWhenNothingChanged) {
  for (int i = 0; i < 100; ++i)
    PutFile(src_ + "/d" + std::to_string(i % 7) + "/" + std::to_string(i), std::to_string(i));
  fs::create_symlink("x", src_ + "/link");
  const CaptureReport first = Take();
  EXPECT_EQ(first.new_files, 100) << "a link has no content";
  EXPECT_EQ(first.read_files, 101);
  const CaptureReport second = Take();
  EXPECT_EQ(second.tree_id, first.tree_id);
  EXPECT_EQ(second.read_files, 0);
  EXPECT_EQ(second.new_files, 0);
  EXPECT_EQ(second.files, 101);
  EXPECT_EQ(second.bytes, first.bytes);
}

TEST_F(CaptureTest, ReadsOnlyWhatChanged) {
  PutFile(src_ + "/a", "1");
  PutFile(src_ + "/b", "1");
  const CaptureReport first = Take();
  PutFile(src_ + "/b", "22");
  const CaptureReport second = Take();
  EXPECT_NE(second.tree_id, first.tree_id);
  EXPECT_EQ(second.read_files, 1);
  EXPECT_EQ(second.new_bytes, 2);
}

TEST_F(CaptureTest, SeesEveryKindOfChange) {
  PutFile(src_ + "/a", "1");
  PutFile(src_ + "/d/b", "1");
  std::vector<std::string> ids = {Take().tree_id};
  const std::vector<std::function<void()>> changes = {
      [&] { PutFile(src_ + "/a", "1", true); },
      [&] { fs::create_directories(src_ + "/e"); },
      [&] { fs::rename(src_ + "/d/b", src_ + "/d/c"); },
      [&] { fs::remove(src_ + "/d/c"); },
      [&] { fs::remove(src_ + "/e"); },
      [&] { fs::remove(src_ + "/a"), fs::create_symlink("1", src_ + "/a"); },
      [&] { fs::remove(src_ + "/a"), fs::create_directories(src_ + "/a"); },
      [&] { fs::remove_all(src_ + "/d"); },
  };
  for (const std::function<void()>& change : changes) {
    change();
    ids.push_back(Take().tree_id);
    EXPECT_NE(ids.back(), ids[ids.size() - 2]) << "change " << ids.size() - 1;
  }
}

// Written at once after the capture, same size: times alone may not tell.
TEST_F(CaptureTest, ReadsFilesAgainThatAreTooYoungToBeTrusted) {
  clock_.SetOffset(0);
  for (int i = 0; i < 20; ++i) {
    PutFile(src_ + "/a", "content " + std::to_string(10 + i));
    const CaptureReport report = Take();
    EXPECT_EQ(report.read_files, 1);
    EXPECT_EQ(EntriesOf(report.tree_id)[0].content.id, Sha256Of("content " + std::to_string(10 + i)));
  }
}

TEST(RacilyClean, LeavesMoreSlackToCoarseTimes) {
  constexpr int64_t kSecond = 1'000'000'000;
  const FileStamp fine{1, 100 * kSecond + 5, 100 * kSecond + 5, 1, 0};
  EXPECT_TRUE(RacilyClean(fine, 100 * kSecond));
  EXPECT_TRUE(RacilyClean(fine, 100 * kSecond + 50'000'000));
  EXPECT_FALSE(RacilyClean(fine, 100 * kSecond + 200'000'000));
  const FileStamp coarse{1, 100 * kSecond, 100 * kSecond, 1, 0};
  EXPECT_TRUE(RacilyClean(coarse, 101 * kSecond));
  EXPECT_FALSE(RacilyClean(coarse, 103 * kSecond));
  const FileStamp touched_back{1, kSecond + 5, 100 * kSecond + 5, 1, 0};
  EXPECT_TRUE(RacilyClean(touched_back, 100 * kSecond)) << "ctime counts too";
}

TEST_F(CaptureTest, RebuildsADamagedIndex) {
  PutFile(src_ + "/a", "1");
  const std::string id = Take().tree_id;
  const std::string index = OnlyIndex();
  std::string bytes;
  {
    std::ifstream in(index, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const std::string& damaged :
       {std::string(), bytes.substr(0, bytes.size() / 2), bytes + "x", "X" + bytes.substr(1)}) {
    PutFile(index, damaged);
    const CaptureReport report = Take();
    EXPECT_EQ(report.tree_id, id);
    EXPECT_EQ(report.read_files, 1);
    EXPECT_EQ(Take().read_files, 0) << "and the index is whole again";
  }
}

TEST(CaptureIndex, RefusesEveryFlippedByte) {
  CaptureIndex index;
  index.folder = "/src";
  index.entries = {CodeEntry{"a", EntryKind::kFile, 1, {FileContent::Kind::kChunk, Sha256Of("x")}, ""},
                   CodeEntry{"b", EntryKind::kLink, 1, {}, "a"}};
  index.stamps = {FileStamp{1, 2, 3, 4, 5}, FileStamp{6, 7, 8, 9, 10}};
  const std::string bytes = EncodeIndex(index);
  ASSERT_TRUE(DecodeIndex(bytes));
  EXPECT_EQ(DecodeIndex(bytes)->entries, index.entries);
  EXPECT_EQ(DecodeIndex(bytes)->stamps, index.stamps);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    EXPECT_FALSE(DecodeIndex(flipped)) << at;
  }
}

TEST_F(CaptureTest, StoresAgainWhenTheTreeIsGone) {
  PutFile(src_ + "/a", "1");
  const std::string id = Take().tree_id;
  fs::remove(store_.Folder() + "/code/" + id);
  fs::remove_all(store_.Folder() + "/packs");
  EXPECT_EQ(Take().new_files, 1);
  EXPECT_EQ(Damage(id), "");
}

TEST_F(CaptureTest, StoresAgainWhatIsGoneThoughItsIndexKnowsIt) {
  PutFile(src_ + "/a", "1");
  PutFile(src_ + "/b", "2");
  Take();
  fs::remove_all(store_.Folder() + "/packs");
  PutFile(src_ + "/b", "3");
  const CaptureReport report = Take();
  EXPECT_EQ(report.new_files, 2) << "a was not read at first: nothing of it had changed";
  EXPECT_EQ(Damage(report.tree_id), "");
}

TEST_F(CaptureTest, GivesTheSameIdWhereverTheCodeStandsAndWhoeverOwnsIt) {
  PutFile(src_ + "/sub/a", "1");
  PutFile(src_ + "/sub/run", "2", true);
  const std::string other = temp_ / "elsewhere";
  fs::copy(src_, other, fs::copy_options::recursive);
  ASSERT_EQ(chmod((other + "/sub/a").c_str(), 0444), 0);
  ASSERT_EQ(chmod((other + "/sub").c_str(), 0755), 0);
  fs::last_write_time(other + "/sub/a", fs::file_time_type::clock::now() - std::chrono::hours(1000));
  const TempFolder temp;
  EXPECT_EQ(Capture(OpenTestStore(temp), other)->tree_id, Take().tree_id);
}

TEST_F(CaptureTest, GivesASparseFileTheIdOfItsZeros) {
  PutFile(src_ + "/f", std::string(1 << 20, '\0'));
  const std::string id = Take().tree_id;
  fs::remove(src_ + "/f");
  PutFile(src_ + "/f", "");
  fs::resize_file(src_ + "/f", 1 << 20);
  EXPECT_EQ(Take().tree_id, id);
}

// An unchanged folder is not worth a single put.
TEST_F(CaptureTest, WritesNothingToTheRepositoryWhenNothingChanged) {
  PutFile(src_ + "/a", "1");
  auto faulty = std::make_shared<FaultStore>(*OpenStore(store_.Folder(), true));
  const Result<SnapshotStore> store =
      SnapshotStore::Open(store_.Folder(), {.clock = &clock_, .objects = faulty});
  const std::string id = Capture(*store, src_)->tree_id;
  const int64_t changes = faulty->changes(), gets = faulty->CallsOf(StoreOp::kGet);
  const int64_t lists = faulty->CallsOf(StoreOp::kList);
  EXPECT_EQ(Capture(*store, src_)->tree_id, id);
  EXPECT_EQ(faulty->changes(), changes);
  EXPECT_EQ(faulty->CallsOf(StoreOp::kGet), gets);
  EXPECT_EQ(faulty->CallsOf(StoreOp::kList), lists);
}

TEST_F(CaptureTest, SkipsPipesAndSocketsWithANote) {
  ASSERT_EQ(mkfifo((src_ + "/pipe").c_str(), 0600), 0);
  PutFile(src_ + "/a", "");
  const CaptureReport report = Take();
  EXPECT_EQ(PathsOf(report.tree_id), Paths{"a"});
  EXPECT_EQ(report.notes, Paths{"skipped 'pipe': neither file, folder nor link"});
}

TEST_F(CaptureTest, StoresLinksAsLinksAndFollowsNone) {
  fs::create_symlink("/etc", src_ + "/outside");
  fs::create_symlink("nowhere", src_ + "/dangling");
  EXPECT_EQ(PathsOf(Take().tree_id), (Paths{"dangling", "outside"}));
}

TEST_F(CaptureTest, TakesNamesOfAnyBytes) {
  for (const std::string& name :
       {std::string("\xff\xfe"), std::string("new\nline"), std::string(" "), std::string("\\"),
        std::string(255, 'x'), std::string("-rf"), std::string("*")}) {
    PutFile(src_ + "/" + name, name);
  }
  EXPECT_EQ(Take().files, 7);
}

// Root without its privileges may read no more than any owner of a file.
bool DropPrivileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

// What a user who is not root may not read.
std::string ErrorWithoutRights(const std::string& store, const std::string& src) {
  const TempFolder temp;
  const pid_t pid = fork();
  if (pid == 0) {
    if (!DropPrivileges()) _exit(1);
    const Result<SnapshotStore> opened =
        SnapshotStore::Open(store, {.clock = nullptr, .lock_timeout_ms = 100});
    if (!opened) _exit(2);
    const Result<CaptureReport> report = Capture(*opened, src);
    const bool as_it_should = !report && report.error().code == ErrorCode::kDenied &&
                              report.error().message.find("'secret'") != std::string::npos &&
                              report.error().hint.find(".overcapignore") != std::string::npos;
    _exit(as_it_should ? 0 : 3);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "ok" : "status " + std::to_string(status);
}

TEST_F(CaptureTest, NamesAnUnreadableFileOrFolderAndSaysWhatToDo) {
  const std::string store = temp_ / "nobodys/store";
  fs::create_directories(store);
  PutFile(src_ + "/secret", "x");
  ASSERT_EQ(chmod((src_ + "/secret").c_str(), 0), 0);
  EXPECT_EQ(ErrorWithoutRights(store, src_), "ok");
  fs::remove(src_ + "/secret");
  PutFile(src_ + "/secret/inside", "x");
  ASSERT_EQ(chmod((src_ + "/secret").c_str(), 0), 0);
  EXPECT_EQ(ErrorWithoutRights(store, src_), "ok");
}

TEST_F(CaptureTest, SaysWhichFolderIsMissing) {
  const Result<CaptureReport> report = Capture(store_, temp_ / "nowhere");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  EXPECT_NE(report.error().message.find("nowhere'"), std::string::npos);
}

TEST_F(CaptureTest, ReportsProgressOfALargeFile) {
  PutFile(src_ + "/large", std::string(5 << 20, 'x'));
  int64_t most = 0;
  CaptureOptions options;
  options.progress = [&](int64_t, int64_t bytes) { most = std::max(most, bytes); };
  const CaptureReport report = Take(options);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 5 << 20);
  EXPECT_EQ(Damage(report.tree_id), "");
}

// A writer that never rests: whatever is captured, its id is that of the stored bytes.
TEST_F(CaptureTest, StoresAFileThatChangesMeanwhileConsistently) {
  PutFile(src_ + "/log", std::string(3 << 20, 'a'));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      std::fstream file(src_ + "/log", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp((i * 7919) % (3 << 20));
      file << i;
    }
  });
  for (int i = 0; i < 5; ++i) {
    const CaptureReport report = Take();
    EXPECT_EQ(Damage(report.tree_id), "");
  }
  stop = true;
  writer.join();
}

// Files come and go below it: never an error, and always a tree that is whole.
TEST_F(CaptureTest, SurvivesFilesThatVanishMeanwhile) {
  for (int i = 0; i < 200; ++i) PutFile(src_ + "/keep/" + std::to_string(i), std::to_string(i));
  std::atomic<bool> stop = false;
  std::thread churn([&] {
    for (int i = 0; !stop; ++i) {
      const std::string path = src_ + "/churn" + std::to_string(i % 5);
      std::error_code ignored;
      fs::create_directories(path, ignored);
      std::ofstream(path + "/f") << i;
      fs::remove_all(path, ignored);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const CaptureReport report = Take();
    EXPECT_GE(report.files, 200);
    EXPECT_EQ(Damage(report.tree_id), "");
  }
  stop = true;
  churn.join();
}

TEST(Largest, NamesTheFoldersWorthLeavingOut) {
  const auto file = [](const std::string& path, int64_t size) {
    return CodeEntry{path, EntryKind::kFile, size, {}, {}};
  };
  const auto folder = [](const std::string& path) { return CodeEntry{path, EntryKind::kFolder, 0, {}, {}}; };
  const Largest largest =
      FindLargest({folder("data"), file("data/index", 10), folder("data/raw"), file("data/raw/a", 500),
                   file("data/raw/b", 400), folder("src"), file("src/x", 1), file("src/y", 1),
                   file("src/z", 1), file("top", 50)});
  EXPECT_EQ(largest.folders, (std::vector<PathSize>{{"data/raw", 2, 900}, {"src", 3, 3}}));
  EXPECT_EQ(largest.crowded_folders, (std::vector<PathSize>{{"data", 3, 910}, {"src", 3, 3}}));
  EXPECT_EQ(largest.files[0], (PathSize{"data/raw/a", 1, 500}));
  EXPECT_EQ(largest.files.size(), 5u);
}

}  // namespace
}  // namespace overcap
