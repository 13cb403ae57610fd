// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/seen.h"

#include <gtest/gtest.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr std::string_view kRepository = "0123456789abcdef0123456789abcdef";

SeenEntry Entry(std::string_view name, SnapshotEntryType type, uint64_t inode) {
  SeenEntry entry;
  entry.name = name;
  entry.type = type;
  entry.stamp =
      SeenStamp{inode, type == SnapshotEntryType::kFolder ? 0 : 7, -5, 77 * kSecond + 3, 0644, 1000, 100};
  return entry;
}

// root: a (file), b (folder: c (link), d (folder)), e (folder: f (file with attributes))
struct Sample {
  std::string xattrs = EncodeXattrs({{"user.a", "1"}, {"user.b", std::string("\0x", 2)}});
  Digest tree = Sha256Of("tree");

  void Write(const std::string& file) const {
    SeenEntry root = Entry("", SnapshotEntryType::kFolder, 1);
    root.xattrs = xattrs;
    SeenWriter writer(5 * kSecond, kRepository, "/work", root);
    SeenEntry a = Entry("a\xff", SnapshotEntryType::kFile, 2);
    a.content = {FileContent::Kind::kMap, Sha256Of("map")};
    a.flags = kSeenUnsteady | kSeenHardLink;
    writer.Folder({a, Entry("b", SnapshotEntryType::kFolder, 3), Entry("e", SnapshotEntryType::kFolder, 4)});
    SeenEntry c = Entry("c", SnapshotEntryType::kSymlink, 5);
    c.target = "../else\nwhere";
    writer.Folder({c, Entry("d", SnapshotEntryType::kFolder, 6)});
    SeenEntry f = Entry("f", SnapshotEntryType::kFile, 7);
    f.xattrs = xattrs;
    writer.Folder({f});
    writer.Folder({});
    ASSERT_TRUE(writer.Finish(tree, file));
  }
};

TEST(Seen, WhatWasWrittenIsReadBack) {
  TempFolder temp;
  const Sample sample;
  sample.Write(temp / "seen");
  const std::optional<Seen> seen = Seen::Load(temp / "seen", kRepository, "/work");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->began_ns(), 5 * kSecond);
  EXPECT_EQ(seen->tree(), sample.tree);
  EXPECT_EQ(seen->folder_count(), 4U);
  EXPECT_EQ(seen->root_stamp().inode, 1U);
  EXPECT_EQ(seen->root().xattrs, sample.xattrs);

  const std::vector<SeenEntry> top = seen->Children(0);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].name, "a\xff");
  EXPECT_EQ(top[0].stamp, Entry("", SnapshotEntryType::kFile, 2).stamp);
  EXPECT_EQ(top[0].content, (FileContent{FileContent::Kind::kMap, Sha256Of("map")}));
  EXPECT_EQ(top[0].flags, kSeenUnsteady | kSeenHardLink);
  EXPECT_EQ(top[1].folder, 1U);
  EXPECT_EQ(top[2].folder, 2U);

  const std::vector<SeenEntry> below_b = seen->Children(top[1].folder);
  ASSERT_EQ(below_b.size(), 2U);
  EXPECT_EQ(below_b[0].target, "../else\nwhere");
  EXPECT_EQ(below_b[1].folder, 3U);
  EXPECT_TRUE(seen->Children(3).empty());

  const std::vector<SeenEntry> below_e = seen->Children(top[2].folder);
  ASSERT_EQ(below_e.size(), 1U);
  EXPECT_EQ(below_e[0].flags, kSeenHasXattrs);
  EXPECT_EQ(DecodeXattrs(below_e[0].xattrs)->at(1).value, std::string("\0x", 2));
}

TEST(Seen, OfAnotherFolderOrRepositoryIsNone) {
  TempFolder temp;
  Sample().Write(temp / "seen");
  EXPECT_FALSE(Seen::Load(temp / "seen", kRepository, "/elsewhere"));
  EXPECT_FALSE(Seen::Load(temp / "seen", "another", "/work"));
  EXPECT_FALSE(Seen::Load(temp / "missing", kRepository, "/work"));
  EXPECT_FALSE(Seen::Load(temp.Path(), kRepository, "/work"));
}

TEST(Seen, AnyDamageMakesItNone) {
  TempFolder temp;
  Sample().Write(temp / "seen");
  PosixFiles files;
  const std::string whole = *files.Read(temp / "seen");
  for (size_t at = 0; at < whole.size(); at += 2) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_TRUE(files.WriteAtomic(temp / "seen", damaged, false));
    ASSERT_FALSE(Seen::Load(temp / "seen", kRepository, "/work")) << at;
    if (at % 8 != 0) continue;
    ASSERT_TRUE(files.WriteAtomic(temp / "seen", whole.substr(0, at), false));
    ASSERT_FALSE(Seen::Load(temp / "seen", kRepository, "/work")) << at;
  }
}

TEST(Seen, BytesUnderARightSumAreStillReadWithCare) {
  TempFolder temp;
  Sample().Write(temp / "seen");
  PosixFiles files;
  const std::string whole = *files.Read(temp / "seen");
  const size_t body = whole.size() - 32;
  int64_t read = 0;
  for (size_t at = 0; at < body; ++at) {
    for (const size_t bit : {at % 8}) {
      std::string damaged = whole.substr(0, body);
      damaged[at] = static_cast<char>(damaged[at] ^ (1U << bit));
      AppendDigest(&damaged, Sha256Of(damaged));
      ASSERT_TRUE(files.WriteAtomic(temp / "seen", damaged, false));
      const std::optional<Seen> seen = Seen::Load(temp / "seen", kRepository, "/work");
      if (!seen) continue;
      for (uint32_t folder = 0; folder < seen->folder_count(); ++folder) {
        for (const SeenEntry& entry : seen->Children(folder)) {
          EXPECT_LE(entry.folder, seen->folder_count());
          if (DecodeXattrs(entry.xattrs)) ++read;
        }
      }
    }
  }
  EXPECT_GT(read, 100);
}

TEST(Xattrs, DamagedOnesAreRefused) {
  EXPECT_EQ(EncodeXattrs({}), "");
  EXPECT_TRUE(DecodeXattrs("")->empty());
  const std::string encoded = EncodeXattrs({{"user.a", "1"}});
  EXPECT_FALSE(DecodeXattrs(encoded.substr(0, encoded.size() - 1)));
  EXPECT_FALSE(DecodeXattrs(encoded + "x"));
}

TEST(RacilySeen, IsWhatChangedJustBeforeTheWalkOrLater) {
  SeenStamp stamp;
  stamp.mtime_ns = 1;
  stamp.ctime_ns = 10 * kSecond;
  EXPECT_FALSE(RacilySeen(stamp, 10 * kSecond + 100'000'000));
  EXPECT_TRUE(RacilySeen(stamp, 10 * kSecond + 99'999'999));
  EXPECT_TRUE(RacilySeen(stamp, 9 * kSecond));
}

TEST(RacilySeen, WholeSecondsMayComeFromAClockThatHasNoOthers) {
  SeenStamp stamp;
  stamp.mtime_ns = 3 * kSecond;
  stamp.ctime_ns = 10 * kSecond;
  EXPECT_TRUE(RacilySeen(stamp, 11 * kSecond));
  EXPECT_FALSE(RacilySeen(stamp, 12 * kSecond));
}

}  // namespace
}  // namespace overcap
