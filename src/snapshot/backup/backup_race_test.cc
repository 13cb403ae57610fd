// SPDX-License-Identifier: Apache-2.0
// Files that change at the wrong moment, and stamps that do not tell.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/backup/read_files.h"
#include "snapshot/backup/testing/backup_rig.h"
#include "snapshot/repository/testing/sample_repository.h"

namespace overcap {
namespace {

TEST(BackupRace, WhatChangedJustBeforeTheLastWalkIsReadAgainOnce) {
  BackupRig rig;
  rig.clock.SetOffset(0);
  rig.Put("small", "1");
  rig.Put("d/large", NoiseBytes(1, 300'000));
  link(rig.Path("small").c_str(), rig.Path("small-too").c_str());
  const BackupReport first = rig.Backup();
  rig.clock.SetOffset(int64_t{3600} * 1'000'000);
  const std::vector<std::string> keys = KeysOf(*rig.store, "");
  const BackupReport second = rig.Backup();
  EXPECT_EQ(second.read_files, 2);
  EXPECT_EQ(second.tree, first.tree);
  EXPECT_FALSE(second.snapshot);
  EXPECT_EQ(KeysOf(*rig.store, ""), keys);
  EXPECT_EQ(rig.Backup().read_files, 0);
}

// Makes the cache say what it would if the files had been changed in the same tick in which they were read.
void PretendNothingChanged(const BackupRig& rig) {
  const Seen seen = *Seen::Load(rig.SeenFile(), rig.repository.config().id, rig.Request().folder);
  struct statx status;
  ASSERT_EQ(statx(AT_FDCWD, rig.Path(".").c_str(), 0, STATX_BASIC_STATS, &status), 0);
  SeenEntry root = seen.root();
  root.stamp = SeenStamp::Of(status);
  SeenWriter writer(root.stamp.ctime_ns, rig.repository.config().id, rig.Request().folder, root);
  std::vector<SeenEntry> children = seen.Children(0);
  for (SeenEntry& child : children) {
    ASSERT_EQ(statx(AT_FDCWD, rig.Path(std::string(child.name)).c_str(), AT_SYMLINK_NOFOLLOW,
                    STATX_BASIC_STATS, &status),
              0);
    child.stamp = SeenStamp::Of(status);
  }
  writer.Folder(children);
  ASSERT_TRUE(writer.Finish(seen.tree(), rig.SeenFile()));
}

TEST(BackupRace, AChangeThatNoStampTellsIsFound) {
  BackupRig rig;
  rig.Put("small", "old");
  rig.Put("large", NoiseBytes(1, 100'000));
  symlink("old", rig.Path("link").c_str());
  rig.Backup();
  rig.Put("small", "new");
  rig.Put("large", NoiseBytes(2, 100'000));
  unlink(rig.Path("link").c_str());
  symlink("new", rig.Path("link").c_str());
  PretendNothingChanged(rig);
  const BackupReport report = rig.Backup();
  ASSERT_TRUE(report.snapshot);
  EXPECT_EQ(rig.Contents(report.tree), rig.OnDisk());
}

// Reads all files of a folder as a backup does, with a hook between reading and judging.
struct Reading {
  Reading(
      const std::string& folder, std::function<void(const std::string& path)> on_read,
      const std::function<void()>& before_read = [] {}) {
    ScanRequest look;
    look.folder = folder;
    scan = std::move(*ScanFolder(look));
    ReadRequest request;
    request.root_fd = scan->root_fd.Get();
    request.sizes = kSmallChunks;
    request.on_read = std::move(on_read);
    std::vector<ReadJob> jobs;
    for (ScannedFolder& below : scan->folders) {
      for (ScannedEntry& entry : below.entries) {
        if (entry.seen.IsFile()) jobs.push_back({&below, &entry});
      }
    }
    before_read();
    std::vector<std::unique_ptr<ChunkSink>> sinks;
    sinks.push_back(std::make_unique<HashSink>());
    sinks.push_back(std::make_unique<HashSink>());
    report = *ReadFiles(request, std::move(jobs), sinks);
  }

  std::unique_ptr<Scan> scan;
  ReadReport report;
};

void Append(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND);
  ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(fd);
}

class FilesThatChange : public testing::TestWithParam<size_t> {};

TEST_P(FilesThatChange, OnceAreReadAgain) {
  TempFolder temp;
  PutFile(temp / "f", NoiseBytes(1, GetParam()));
  int times = 0;
  const Reading reading(temp.Path(), [&](const std::string&) {
    if (++times == 1) Append(temp / "f", "more");
  });
  const ScannedEntry& entry = reading.scan->top().entries[0];
  EXPECT_EQ(times, 2);
  EXPECT_EQ(entry.fate, EntryFate::kRead);
  EXPECT_EQ(entry.seen.flags & kSeenUnsteady, 0U);
  EXPECT_EQ(entry.seen.stamp.size, static_cast<int64_t>(GetParam() + 4));
}

TEST_P(FilesThatChange, AllTheTimeAreMarked) {
  TempFolder temp;
  PutFile(temp / "f", NoiseBytes(1, GetParam()));
  const Reading reading(temp.Path(), [&](const std::string&) { Append(temp / "f", "more"); });
  const ScannedEntry& entry = reading.scan->top().entries[0];
  EXPECT_EQ(entry.fate, EntryFate::kRead);
  EXPECT_EQ(entry.seen.flags & kSeenUnsteady, kSeenUnsteady);
  EXPECT_EQ((entry.seen.stamp.size - static_cast<int64_t>(GetParam())) % 4, 0);
  EXPECT_TRUE(reading.report.problems.empty());
}

TEST_P(FilesThatChange, IntoNothingAreEmpty) {
  TempFolder temp;
  PutFile(temp / "f", NoiseBytes(1, GetParam()));
  int times = 0;
  const Reading reading(temp.Path(), [&](const std::string&) {
    if (++times == 1) {
      ASSERT_EQ(truncate((temp / "f").c_str(), 0), 0);
    }
  });
  const ScannedEntry& entry = reading.scan->top().entries[0];
  EXPECT_EQ(entry.seen.content, FileContent());
  EXPECT_EQ(entry.seen.stamp.size, 0);
}

TEST_P(FilesThatChange, BetweenTheWalkAndTheReadingAreAsTheyWereRead) {
  TempFolder temp;
  PutFile(temp / "f", NoiseBytes(1, GetParam()));
  const Reading reading(temp.Path(), nullptr, [&] { PutFile(temp / "f", "short"); });
  const ScannedEntry& entry = reading.scan->top().entries[0];
  EXPECT_EQ(entry.seen.content, (FileContent{FileContent::Kind::kChunk, Sha256Of("short")}));
  EXPECT_EQ(entry.seen.stamp.size, 5);
  EXPECT_EQ(entry.seen.flags, 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, FilesThatChange, testing::Values(0, 100, 30'000, 1'500'000));

TEST(FilesThatVanish, AreNotThere) {
  TempFolder temp;
  PutFile(temp / "a", "1");
  PutFile(temp / "gone", "2");
  PutFile(temp / "folder/gone", "3");
  PutFile(temp / "replaced", "4");
  const Reading reading(temp.Path(), nullptr, [&] {
    unlink((temp / "gone").c_str());
    unlink((temp / "folder/gone").c_str());
    rmdir((temp / "folder").c_str());
    unlink((temp / "replaced").c_str());
    mkfifo((temp / "replaced").c_str(), 0600);
  });
  EXPECT_TRUE(reading.report.problems.empty());
  for (const ScannedFolder& folder : reading.scan->folders) {
    for (const ScannedEntry& entry : folder.entries) {
      if (entry.seen.IsFolder()) continue;
      EXPECT_EQ(entry.fate == EntryFate::kGone, entry.seen.name != "a") << entry.seen.name;
    }
  }
}

TEST(BackupRace, AnUnsteadyFileIsReadAgainByTheNextBackup) {
  BackupRig rig;
  rig.Put("f", "content");
  rig.Backup();
  const Seen seen = *Seen::Load(rig.SeenFile(), rig.repository.config().id, rig.Request().folder);
  std::vector<SeenEntry> children = seen.Children(0);
  children[0].flags |= kSeenUnsteady;
  SeenWriter writer(seen.began_ns(), rig.repository.config().id, rig.Request().folder, seen.root());
  writer.Folder(children);
  ASSERT_TRUE(writer.Finish(seen.tree(), rig.SeenFile()));
  EXPECT_EQ(rig.Backup().read_files, 1);
  EXPECT_EQ(rig.Backup().read_files, 0);
}

}  // namespace
}  // namespace overcap
