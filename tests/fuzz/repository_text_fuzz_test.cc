// SPDX-License-Identifier: Apache-2.0
// The JSON texts, keys and sealed objects of a repository, changed at random: what is accepted is sound,
// nothing crashes.
#include <gtest/gtest.h>

#include "base/text.h"
#include "mutate.h"
#include "snapshot/format/seal.h"
#include "snapshot/format/snapshot_record.h"
#include "stores/store.h"

namespace overcap {
namespace {

constexpr int kRounds = 20'000;

SnapshotRecord AnyRecord() {
  SnapshotRecord record;
  record.tree = Sha256Of("tree");
  record.workspace = "work";
  record.time_us = 1'794'753'900'123'456;
  record.host = "node1";
  record.message = "text \"quoted\" \n";
  record.parent = Sha256Of("parent").Hex();
  record.files = 3;
  return record;
}

const std::vector<std::string> kWords = {"\"",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         ":",
                                         ",",
                                         "null",
                                         "-1",
                                         "1e999",
                                         "18446744073709551616",
                                         "\"version\":3",
                                         "\"tree\":",
                                         "\\u0000",
                                         "\xff",
                                         "true",
                                         "0"};

TEST(RepositoryTextFuzz, AcceptedRecordsAreSound) {
  Mutator mutator({EncodeSnapshotRecord(AnyRecord())}, kWords, 1);
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = mutator.Next();
    const Result<SnapshotRecord> record = DecodeSnapshotRecord(text, "x");
    if (!record) {
      EXPECT_TRUE(record.error().code == ErrorCode::kCorrupt || record.error().code == ErrorCode::kConflict);
      continue;
    }
    ++accepted;
    mutator.Keep(text);
    EXPECT_TRUE(ValidWorkspaceName(record->workspace));
    EXPECT_GE(std::min({record->files, record->bytes, record->entries, record->time_us, record->unread}), 0);
    const Result<SnapshotRecord> again = DecodeSnapshotRecord(EncodeSnapshotRecord(*record), "x");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->tree, record->tree);
  }
  EXPECT_GT(accepted, 100);
}

// With a right check, as somebody who means harm would write it.
TEST(RepositoryTextFuzz, AcceptedConfigsAreWithinBounds) {
  RepositoryConfig config;
  config.id = "00112233445566778899aabbccddeeff";
  config.encryption = EncryptionConfig{16, 1, 1, std::string(32, 's'), std::string(60, 'm')};
  const std::string whole = EncodeRepositoryConfig(config), body = whole.substr(0, whole.rfind(",\"check\""));
  Mutator mutator({body}, kWords, 2);
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = mutator.Next();
    EXPECT_FALSE(DecodeRepositoryConfig(text, "x"));
    const Result<RepositoryConfig> read =
        DecodeRepositoryConfig(StrCat(text, ",\"check\":\"", Sha256Of(text).Hex(), "\"}\n"), "x");
    if (!read) continue;
    ++accepted;
    mutator.Keep(text);
    EXPECT_EQ(read->id.size(), 32u);
    EXPECT_GE(read->chunks.min, 64);
    EXPECT_LE(read->chunks.max, 8'388'608);
    EXPECT_TRUE(!read->encryption || read->encryption->master.size() == 60);
  }
  EXPECT_GT(accepted, 100);
}

TEST(RepositoryTextFuzz, AcceptedKeysAreThoseTheyName) {
  const SnapshotKey key{"work", 1'794'753'900'123'456, Sha256Of("x")};
  Mutator mutator({key.Text(), "packs/ab/abcd", "config"}, {"/", "..", ".", "-", "T", "Z", "snapshots/", "0"},
                  3);
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = mutator.Next();
    const std::optional<SnapshotKey> read = ParseSnapshotKey(text);
    EXPECT_EQ(read ? read->Text() : text, text);
    if (!ValidKey(text)) {
      EXPECT_FALSE(read);
      continue;
    }
    mutator.Keep(text);
    EXPECT_EQ(("/" + text + "/").find("/../"), std::string::npos);
    EXPECT_EQ(("/" + text + "/").find("//"), std::string::npos);
  }
}

TEST(RepositoryTextFuzz, SealedObjectsOpenOnlyUnchanged) {
  const SecretKey master(Sha256Of("master").bytes);
  const std::string sealed = SealObject(master, "id", "index", "some plain text").value_or("");
  Mutator mutator({sealed}, {"ocseal2\n", std::string(32, '\0')}, 4);
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = mutator.Next();
    const Result<std::string> plain = OpenObject(master, "id", "index", text);
    EXPECT_EQ(plain.has_value(), text == sealed);
    EXPECT_TRUE(plain || plain.error().code == ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace overcap
