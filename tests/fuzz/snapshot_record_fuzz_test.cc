// SPDX-License-Identifier: Apache-2.0
// What stands under snapshots/ and in config.
#include "inputs.h"
#include "snapshot/format/snapshot_record.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {"{",
                                         "}",
                                         "\"",
                                         ":",
                                         ",",
                                         "[",
                                         "]",
                                         "null",
                                         "true",
                                         "0",
                                         "-1",
                                         "9223372036854775808",
                                         "1e999",
                                         "\\",
                                         "\n",
                                         "..",
                                         "/x",
                                         "\xff",
                                         "\\u0000",
                                         "\\ud800",
                                         "version",
                                         "\"version\":3,",
                                         std::string(1, '\0')};

ErrorCode ExpectedCode(const Error& error) {
  return error.code == ErrorCode::kConflict ? ErrorCode::kConflict : ErrorCode::kCorrupt;
}

SnapshotRecord SampleRecord() {
  SnapshotRecord record;
  record.tree = Sha256Of("tree");
  record.workspace = "work";
  record.time_us = 1'763'210'000'123'456;
  record.host = "node1";
  record.folder = "/scratch/u/work";
  record.user = "u";
  record.message = "before \"lunch\"";
  record.parent = Sha256Of("parent").Hex();
  record.entries = record.files = record.bytes = 17;
  record.program = "overcap 1";
  return record;
}

TEST(SnapshotRecordFuzz, RecordsAreReadOrRefused) {
  ForEachInput(Mutator({EncodeSnapshotRecord(SampleRecord())}, kWords, 1).Gently(),
               [](const std::string& input) {
                 const auto record = DecodeSnapshotRecord(input, "the-name");
                 if (!record) return ExpectOneLine(record.error(), ExpectedCode(record.error()));
                 EXPECT_TRUE(ValidWorkspaceName(record->workspace));
                 EXPECT_GE(record->entries, 0);
                 EXPECT_GE(record->bytes, 0);
                 const std::string again = EncodeSnapshotRecord(*record);
                 const auto twice = DecodeSnapshotRecord(again, "the-name");
                 EXPECT_TRUE(twice);
                 EXPECT_EQ(twice ? EncodeSnapshotRecord(*twice) : "", again);
                 return true;
               });
}

TEST(SnapshotRecordFuzz, KeysAreReadOrRefused) {
  SnapshotKey key{"work", 1'763'210'000'123'456, Sha256Of("s")};
  const std::vector<std::string> words = {"/", "..", "snapshots/", "-", "T", "Z", "0", "9", "99999999", "."};
  ForEachInput(Mutator({key.Text(), SnapshotKey{"a.b-c_D", 0, Digest()}.Text()}, words, 2).Gently(),
               [](const std::string& input) {
                 const auto parsed = ParseSnapshotKey(input);
                 if (!parsed) return false;
                 EXPECT_EQ(parsed->Text(), input);
                 EXPECT_TRUE(ValidWorkspaceName(parsed->workspace));
                 return true;
               });
}

// The hash at the end of a config would let no change through: it is taken off, and made again.
constexpr std::string_view kCheck = ",\"check\":\"";
std::string WithoutCheck(const RepositoryConfig& config) {
  const std::string text = EncodeRepositoryConfig(config);
  return text.substr(0, text.rfind(kCheck));
}

TEST(SnapshotRecordFuzz, ConfigsAreReadOrRefused) {
  const RepositoryConfig plain{.id = std::string(32, 'a'), .chunks = {}, .encryption = {}};
  RepositoryConfig sealed = plain;
  sealed.encryption = EncryptionConfig{65'536, 8, 1, std::string(32, 's'), std::string(60, 'm')};
  ForEachInput(
      Mutator({WithoutCheck(plain), WithoutCheck(sealed)}, kWords, 3).Gently(),
      [](const std::string& input) {
        EXPECT_FALSE(DecodeRepositoryConfig(input, "the-place"));
        const auto config =
            DecodeRepositoryConfig(StrCat(input, kCheck, Sha256Of(input).Hex(), "\"}\n"), "the-place");
        if (!config) return ExpectOneLine(config.error(), ExpectedCode(config.error()));
        EXPECT_EQ(config->id.size(), 32u);
        EXPECT_GE(config->chunks.min, 64);
        EXPECT_LE(config->chunks.min, config->chunks.max);
        EXPECT_LE(config->chunks.max, 8'388'608);
        EXPECT_GE(config->chunks.segment, config->chunks.max);
        const std::string again = EncodeRepositoryConfig(*config);
        const auto twice = DecodeRepositoryConfig(again, "the-place");
        EXPECT_TRUE(twice);
        EXPECT_EQ(twice ? EncodeRepositoryConfig(*twice) : "", again);
        return true;
      },
      kFewUnderstood);
}

}  // namespace
}  // namespace overcap
