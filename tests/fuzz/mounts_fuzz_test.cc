// SPDX-License-Identifier: Apache-2.0
// Texts about mounts that are nearly right: whatever is understood says the same when it is written again.
#include <gtest/gtest.h>

#include "control/mounts/changed_files.h"
#include "control/mounts/job_stores.h"
#include "control/mounts/mount_entry.h"
#include "control/mounts/mount_table.h"
#include "control/mounts/mounter_words.h"
#include "mutate.h"

namespace overcap {
namespace {

constexpr int kInputs = 20'000;

TEST(MountsFuzz, RecordsOfANode) {
  const std::string good =
      R"({"host":"n1","mounts":[{"name":"data","store":"s3://bucket/x","at":"data","mode":"rw","cache_bytes":1073741824,)"
      R"("mounter":"rclone","options":["-v"],"access":{"endpoint":"http://x","path_style":"true"}},)"
      R"({"name":"out","store":"/nfs/out","at":"in/out","mode":"copy"}]})";
  Mutator mutator({good, R"({"mounts":[]})"},
                  {"\"mode\":\"copy-ro\"", "{\"hex\":\"ff\"}", "null", "../", "[", "{", "\"at\":\"\""}, 1);
  int understood = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutator.Next();
    const auto record = ParseMountsRecord(text);
    if (!record) continue;
    ++understood;
    mutator.Keep(text);
    const auto again = ParseMountsRecord(MountsRecordText(*record));
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(again->mounts, record->mounts) << text;
    ASSERT_LE(record->mounts.size(), kMostMounts);
    for (const MountSpec& mount : record->mounts) {
      ASSERT_FALSE(mount.at.starts_with('/')) << text;
      ASSERT_EQ(("/" + mount.at + "/").find("/../"), std::string::npos) << text;
      ASSERT_EQ(mount.name.find('/'), std::string::npos) << text;
    }
  }
  EXPECT_GT(understood, kInputs / 100);
}

TEST(MountsFuzz, Flags) {
  Mutator mutator(
      {"data=s3://bucket/x,at=in,mode=rw,cache=5G,mounter=rclone,option=-v", "data", "data=a:b,mode=copy"},
      {",at=", ",option=", ",mode=ro", "=", ",", "../"}, 2);
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutator.Next();
    const auto mount = ParseMountFlag(text);
    if (!mount) continue;
    mutator.Keep(text);
    ASSERT_TRUE(CheckedMount(mount->name, mount->entry)) << text;
  }
}

TEST(MountsFuzz, ListsOfFilesAndOfMounts) {
  const std::string table =
      "122 27 0:44 / /tmp/m/a\\040b rw - fuse.rclone x rw\n124 27 0:46 / /tmp/m/c rw - tmpfs tmpfs rw\n";
  Mutator mutator({StampsToText({{"a/b", {1, 2, 3}}, {"c", {4, 5, 6}}}), table},
                  {std::string(1, '\0'), "\\0", "\\134", " ", "-1"}, 3);
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutator.Next();
    if (const auto stamps = StampsFromText(text)) {
      const auto again = StampsFromText(StampsToText(*stamps));
      ASSERT_TRUE(again && *again == *stamps);
      mutator.Keep(text);
    }
    for (const std::string& point : MountPointsIn(text, "/tmp/m"))
      ASSERT_TRUE(point.starts_with("/tmp/m")) << text;
  }
}

TEST(MountsFuzz, WordsOfMounters) {
  Mutator mutator(
      {"starting\nError: unknown flag: --fo\nUsage:\n  rclone mount\n2026/01/01 Fatal error: unknown flag\n",
       "Incorrect Usage: no such flag\n\nNAME:\n  goofys\n"},
      {"\n", "Usage:", "NAME:", "\xff", std::string(1, '\0'), "\r"}, 4);
  for (int i = 0; i < kInputs; ++i) {
    const std::string words = MounterLastWords(mutator.Next());
    ASSERT_LE(words.size(), 1000u);
    ASSERT_EQ(words.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace overcap
