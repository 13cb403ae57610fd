// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/backup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/backup/seen.h"
#include "snapshot/backup/testing/backup_rig.h"
#include "snapshot/repository/testing/sample_repository.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

using Contents = std::map<std::string, std::string>;

void FillFolder(const BackupRig& rig) {
  rig.Put("a.txt", "one");
  rig.Put("empty", "");
  rig.Put("deep/er/still/b.txt", TextBytes(1, 900));
  rig.Put("deep/er/large.bin", NoiseBytes(2, 300'000));
  rig.Put("deep.txt", TextBytes(3, 50'000));
  rig.Put("name\xff\xfe\n'\"\\", "odd");
  mkdir(rig.Path("hollow").c_str(), 0700);
  symlink("deep/er", rig.Path("link").c_str());
  symlink("no\nwhere", rig.Path("deep/dangling").c_str());
}

TEST(Backup, HoldsEveryEntryAndEveryByte) {
  BackupRig rig;
  FillFolder(rig);
  const BackupReport report = rig.Backup();
  ASSERT_TRUE(report.snapshot);
  EXPECT_FALSE(report.parent);
  EXPECT_EQ(rig.Contents(report.tree), rig.OnDisk());
  EXPECT_EQ(report.entries, 13);
  EXPECT_EQ(report.files, 6);
  EXPECT_EQ(report.bytes, 3 + 900 + 300'000 + 50'000 + 3);
  EXPECT_EQ(report.read_files, 6);
  EXPECT_EQ(report.read_bytes, report.bytes);
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(rig.repository.Find("work", "latest")->record.entries, 13);
}

TEST(Backup, KeepsModesOwnersAndTimesToTheNanosecond) {
  BackupRig rig;
  rig.Put("d/f", "x");
  chmod(rig.Path("d/f").c_str(), 04751);
  symlink("f", rig.Path("d/l").c_str());
  const timespec times[2] = {{1, 1}, {-5, 123'456'789}};
  ASSERT_EQ(utimensat(AT_FDCWD, rig.Path("d/f").c_str(), times, 0), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, rig.Path("d/l").c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, rig.Path("d").c_str(), times, 0), 0);
  const auto tree = rig.Tree(rig.Backup().tree);
  for (const char* path : {"d", "d/f", "d/l"})
    EXPECT_EQ(tree.at(path).mtime_ns, -5'000'000'000 + 123'456'789) << path;
  EXPECT_EQ(tree.at("d/f").mode, 04751U);
  EXPECT_EQ(tree.at("d/l").mode, 0777U);
  EXPECT_EQ(tree.at("d/f").uid, geteuid());
  EXPECT_EQ(tree.at("").type, SnapshotEntryType::kFolder);
}

TEST(Backup, OfAnUnchangedFolderReadsNothingAndLeavesTheStoreAlone) {
  BackupRig rig;
  FillFolder(rig);
  const BackupReport first = rig.Backup();
  const std::vector<std::string> keys = KeysOf(*rig.store, "");
  const BackupReport second = rig.Backup();
  EXPECT_FALSE(second.snapshot);
  EXPECT_EQ(second.parent->Id(), first.snapshot->Id());
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_EQ(second.read_files, 0);
  EXPECT_EQ(second.entries, first.entries);
  EXPECT_EQ(second.bytes, first.bytes);
  EXPECT_EQ(KeysOf(*rig.store, ""), keys);
}

TEST(Backup, WritesASnapshotOfAnUnchangedFolderWhenAsked) {
  BackupRig rig;
  FillFolder(rig);
  const BackupReport first = rig.Backup();
  BackupRequest request = rig.Request();
  request.write_unchanged = true;
  request.message = "before the merge";
  const BackupReport second = rig.Backup(request);
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_EQ(second.snapshot->record.parent, first.snapshot->Id());
  EXPECT_EQ(second.snapshot->record.message, "before the merge");
  EXPECT_EQ(second.read_files, 0);
  EXPECT_EQ(second.new_bytes, 0);
}

TEST(Backup, ReadsOnlyWhatChanged) {
  BackupRig rig;
  FillFolder(rig);
  rig.Backup();
  rig.Put("a.txt", "two");
  rig.Put("deep/new", "new");
  unlink(rig.Path("deep/er/still/b.txt").c_str());
  rename(rig.Path("deep.txt").c_str(), rig.Path("moved.txt").c_str());
  const BackupReport second = rig.Backup();
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(rig.Contents(second.tree), rig.OnDisk());
  EXPECT_EQ(second.read_files, 3);  // a renamed file has a new ctime
  EXPECT_LT(second.new_bytes, 5'000);
}

TEST(Backup, SeesThatAnEntryBecameAnotherKind) {
  BackupRig rig;
  FillFolder(rig);
  rig.Backup();
  unlink(rig.Path("a.txt").c_str());
  rig.Put("a.txt/inside", "x");
  unlink(rig.Path("link").c_str());
  rig.Put("link", "a file now");
  rmdir(rig.Path("hollow").c_str());
  symlink("a.txt", rig.Path("hollow").c_str());
  const BackupReport second = rig.Backup();
  EXPECT_EQ(rig.Contents(second.tree), rig.OnDisk());
}

TEST(Backup, SeesAttributesThatChangedWithoutTheContent) {
  BackupRig rig;
  FillFolder(rig);
  rig.Backup();
  chmod(rig.Path("hollow").c_str(), 0751);
  const BackupReport second = rig.Backup();
  ASSERT_TRUE(second.snapshot);
  EXPECT_EQ(rig.Tree(second.tree).at("hollow").mode, 0751U);
  EXPECT_EQ(second.read_files, 0);
}

TEST(Backup, GivesTheSameTreeWithAndWithoutACache) {
  BackupRig rig;
  FillFolder(rig);
  rig.Backup();
  rig.Put("a.txt", "two");
  const BackupReport cached = rig.Backup();
  BackupRequest request = rig.Request();
  request.seen_file.clear();
  request.threads = 1;
  const BackupReport whole = rig.Backup(request);
  EXPECT_EQ(whole.tree, cached.tree);
  EXPECT_EQ(whole.read_files, 6);
  EXPECT_FALSE(whole.snapshot);
  EXPECT_EQ(whole.new_bytes, 0);
}

TEST(Backup, DoesNotNeedItsCache) {
  BackupRig rig;
  FillFolder(rig);
  const BackupReport first = rig.Backup();
  std::string bytes = *PosixFiles().Read(rig.SeenFile());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(PosixFiles().WriteAtomic(rig.SeenFile(), bytes, false));
  const BackupReport second = rig.Backup();
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_EQ(second.read_files, 6);
  EXPECT_EQ(rig.Backup().read_files, 0);
}

TEST(Backup, LeavesOutItsOwnFolderAndWhatIsExcluded) {
  BackupRig rig;
  rig.Put("keep.txt", "1");
  rig.Put("a.o", "2");
  rig.Put("sub/.overcap/x", "3");
  rig.Put("build/x", "4");
  rig.Put("sub/build/x", "5");
  BackupRequest request = rig.Request();
  request.exclude = {"*.o", "/build/"};
  const Contents expected = {{"keep.txt", "file 1"},       {"sub", "dir"},       {"sub/.overcap", "dir"},
                             {"sub/.overcap/x", "file 3"}, {"sub/build", "dir"}, {"sub/build/x", "file 5"}};
  EXPECT_EQ(rig.Contents(rig.Backup(request).tree), expected);
  EXPECT_FALSE(rig.Backup(request).snapshot);
  EXPECT_TRUE(rig.Contents(rig.Backup().tree).contains("a.o"));
  EXPECT_EQ(rig.Contents(rig.Backup(request).tree), expected);
}

TEST(Backup, TellsOfPipesAndSocketsAndIsCompleteWithoutThem) {
  BackupRig rig;
  rig.Put("f", "x");
  ASSERT_EQ(mkfifo(rig.Path("z-pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(rig.Path("a-pipe").c_str(), 0600), 0);
  const BackupReport report = rig.Backup();
  ASSERT_EQ(report.problems.size(), 2U);
  EXPECT_EQ(report.problems[0].path, "a-pipe");
  EXPECT_EQ(report.problems[0].what, "a pipe");
  EXPECT_TRUE(report.problems[0].skipped);
  EXPECT_EQ(report.skipped, 2);
  EXPECT_EQ(report.unread, 0);
  EXPECT_EQ(rig.Contents(report.tree), (Contents{{"f", "file x"}}));
  EXPECT_EQ(rig.Backup().skipped, 2);
}

TEST(Backup, OfAFolderThatIsNoneIsNotFound) {
  BackupRig rig;
  rig.Put("f", "x");
  BackupRequest request = rig.Request();
  for (const char* name : {"missing", "f"}) {
    request.folder = rig.Path(name);
    const Result<BackupReport> report = Backup(rig.repository, request);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
  }
}

TEST(Backup, TakesPathsThatAreLongerThanTheKernelTakesAtOnce) {
  BackupRig rig;
  int at = open(rig.Path(".").c_str(), O_RDONLY | O_DIRECTORY);
  const std::string name(200, 'n');
  std::string path;
  for (int depth = 0; depth < 60; ++depth) {
    ASSERT_EQ(mkdirat(at, name.c_str(), 0755), 0);
    const int below = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    close(at);
    at = below;
    path += name + "/";
  }
  const int file = openat(at, "f", O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(write(file, "deep", 4), 4);
  close(file);
  close(at);
  const BackupReport report = rig.Backup();
  const auto tree = rig.Tree(report.tree);
  EXPECT_EQ(tree.size(), 62U);
  ASSERT_TRUE(tree.contains(path + "f"));
  EXPECT_EQ(rig.Content(tree.at(path + "f")), "deep");
  EXPECT_FALSE(rig.Backup().snapshot);
}

TEST(Backup, TakesManyFilesInOneFolder) {
  BackupRig rig;
  for (int i = 0; i < 3000; ++i) rig.Put(StrCat("many/", i), std::to_string(i));
  const BackupReport report = rig.Backup();
  EXPECT_EQ(rig.Contents(report.tree), rig.OnDisk());
  EXPECT_EQ(rig.Backup().read_files, 0);
}

TEST(Backup, EndsSoonWhenStoppedAndTheNextOneGoesOn) {
  const auto faulty = std::make_shared<FaultStore>(std::make_shared<MemStore>());
  BackupRig rig(faulty);
  for (int i = 0; i < 40; ++i) rig.Put(StrCat("f", i), NoiseBytes(static_cast<uint64_t>(i), 200'000));
  std::atomic<bool> stop = false;
  BackupRequest request = rig.Request();
  request.stop = &stop;
  faulty->OnCall(
      [&](const StoreCall& call) { stop = stop || call.key.starts_with("index"); });  // at the first chunk
  const Result<BackupReport> report = Backup(rig.repository, request);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(rig.repository.Find("work", "latest"));
  EXPECT_TRUE(KeysOf(*rig.store, "writers/").empty());
  const BackupReport next = rig.Backup();
  EXPECT_LT(next.new_bytes, next.bytes);
  EXPECT_EQ(rig.Contents(next.tree), rig.OnDisk());
}

TEST(Backup, TellsHowFarItIs) {
  BackupRig rig;
  FillFolder(rig);
  BackupRequest request = rig.Request();
  BackupProgress last;
  request.progress = [&](const BackupProgress& progress) { last = progress; };
  const BackupReport report = rig.Backup(request);
  EXPECT_FALSE(last.scanning);
  EXPECT_EQ(last.entries + 1, report.entries);
  EXPECT_EQ(last.bytes_done, report.bytes);
  EXPECT_EQ(last.bytes_total, report.bytes);
  EXPECT_EQ(last.files_total, 6);
  EXPECT_EQ(last.stored_bytes, report.stored_bytes);
}

}  // namespace
}  // namespace overcap
