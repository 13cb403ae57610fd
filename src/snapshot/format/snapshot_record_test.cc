// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/snapshot_record.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/text.h"
#include "snapshot/format/key_time.h"

namespace overcap {
namespace {

SnapshotRecord Sample() {
  SnapshotRecord record;
  record.tree = Sha256Of("tree");
  record.workspace = "exp-1";
  record.time_us = 1'794'753'900'123'456;
  record.host = "node7";
  record.folder = "/scratch/ann/work";
  record.user = "ann";
  record.message = "before the \"big\" change\n";
  record.parent = Sha256Of("parent").Hex();
  record.entries = 12;
  record.files = 10;
  record.bytes = 5'000'000'000;
  record.new_bytes = 7;
  record.stored_bytes = 6;
  record.unread = 1;
  record.unsteady = 2;
  record.program = "0.1.0";
  return record;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

ErrorCode CodeOfRecord(const std::string& json) {
  const Result<SnapshotRecord> record = DecodeSnapshotRecord(json, "x");
  return record ? ErrorCode::kInternal : record.error().code;
}

TEST(SnapshotRecord, ComesBackAsItWas) {
  const std::string json = EncodeSnapshotRecord(Sample());
  const Result<SnapshotRecord> record = DecodeSnapshotRecord(json, "x");
  ASSERT_TRUE(record);
  EXPECT_EQ(EncodeSnapshotRecord(*record), json);
  EXPECT_EQ(record->tree, Sha256Of("tree"));
  EXPECT_EQ(record->bytes, 5'000'000'000);
  EXPECT_EQ(record->message, Sample().message);
}

TEST(SnapshotRecord, UnknownMembersAreIgnored) {
  const std::string json = Replaced(EncodeSnapshotRecord(Sample()), "{", "{\"new\":[1,{\"a\":2}],");
  EXPECT_TRUE(DecodeSnapshotRecord(json, "x"));
}

TEST(SnapshotRecord, ANewerOneIsRefusedAsSuch) {
  const std::string json = Replaced(EncodeSnapshotRecord(Sample()), "\"version\":2", "\"version\":3");
  const Result<SnapshotRecord> record = DecodeSnapshotRecord(json, "snapshots/a/b");
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::kConflict);
  EXPECT_NE(record.error().message.find("'snapshots/a/b'"), std::string::npos);
  EXPECT_NE(record.error().message.find("newer"), std::string::npos);
}

TEST(SnapshotRecord, WhatIsNoneIsDamaged) {
  const std::string good = EncodeSnapshotRecord(Sample());
  for (const std::string& bad :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"), good.substr(0, 40),
        Replaced(good, "overcap snapshot", "overcap repository"),
        Replaced(good, "\"version\":2", "\"version\":1"),
        Replaced(good, "\"version\":2", "\"version\":\"2\""), Replaced(good, "\"files\":10", "\"files\":-1"),
        Replaced(good, "\"files\":10", "\"files\":1.5"),
        Replaced(good, "\"files\":10", "\"files\":18446744073709551615"),
        Replaced(good, "\"workspace\":\"exp-1\"", "\"workspace\":\"../x\""),
        Replaced(good, "\"tree\":\"", "\"tree\":\"0"), Replaced(good, "\"parent\":\"", "\"parent\":\"zz"),
        std::string(2'000'000, '['), std::string(500'000, '[')})
    EXPECT_EQ(CodeOfRecord(bad), ErrorCode::kCorrupt) << bad.substr(0, 300);
}

TEST(SnapshotKey, HasTheFormOfTheFormat) {
  const SnapshotKey key{"exp-1", 1'794'753'900'123'456, Sha256Of("x")};
  EXPECT_EQ(key.Text(), "snapshots/exp-1/20261115T144500.123456Z-" + Sha256Of("x").Hex());
}

TEST(SnapshotKey, ComesBackAsItWas) {
  EXPECT_TRUE(rc::check([] {
    const int64_t time_us = *rc::gen::inRange<int64_t>(0, 253'402'300'799'999'999);
    const SnapshotKey key{"w", time_us, Sha256Of(std::to_string(time_us))};
    const std::optional<SnapshotKey> back = ParseSnapshotKey(key.Text());
    RC_ASSERT(back && back->time_us == time_us && back->id == key.id && back->workspace == "w");
  }));
}

TEST(SnapshotKey, TimesSortAsTheyPass) {
  EXPECT_TRUE(rc::check([](int64_t a, int64_t b) {
    const auto bounded = [](int64_t t) { return (t & INT64_MAX) % 253'402'300'799'999'999; };
    RC_ASSERT((bounded(a) < bounded(b)) == (KeyTimeText(bounded(a)) < KeyTimeText(bounded(b))));
  }));
  EXPECT_EQ(KeyTimeText(-5), "19700101T000000.000000Z");
  EXPECT_EQ(KeyTimeText(INT64_MAX), "99991231T235959.999999Z");
}

TEST(SnapshotKey, OthersAreNone) {
  const std::string id = Sha256Of("x").Hex(), good = "snapshots/w/20261115T144500.123456Z-" + id;
  ASSERT_TRUE(ParseSnapshotKey(good));
  for (const std::string& bad :
       {std::string(), std::string("snapshots/"), "index/w/20261115T144500.123456Z-" + id,
        "snapshots/20261115T144500.123456Z-" + id, "snapshots/w/x/20261115T144500.123456Z-" + id,
        "snapshots/.w/20261115T144500.123456Z-" + id, "snapshots/w/20261315T144500.123456Z-" + id,
        "snapshots/w/20260230T144500.123456Z-" + id, "snapshots/w/20261115T244500.123456Z-" + id,
        "snapshots/w/20261115T144560.123456Z-" + id, "snapshots/w/20261115t144500.123456Z-" + id,
        "snapshots/w/2026111xT144500.123456Z-" + id, "snapshots/w/00001115T144500.123456Z-" + id, good + "0",
        good.substr(0, good.size() - 1)})
    EXPECT_FALSE(ParseSnapshotKey(bad)) << bad;
}

TEST(WorkspaceName, SaysWhatIsAllowed) {
  for (const char* good : {"a", "Exp_1.2-x", "0"}) EXPECT_TRUE(ValidWorkspaceName(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".a"), std::string("-a"), std::string("a/b"),
        std::string("a b"), std::string("\xff"), std::string(65, 'a')})
    EXPECT_EQ(ValidWorkspaceName(bad).error().code, ErrorCode::kUsage) << bad;
  EXPECT_NE(ValidWorkspaceName("a/b").error().message.find("'a/b'"), std::string::npos);
}

RepositoryConfig SampleConfig() {
  RepositoryConfig config;
  config.id = "00112233445566778899aabbccddeeff";
  config.encryption = EncryptionConfig{65'536, 8, 1, std::string(32, 's'), std::string(60, 'm')};
  return config;
}

TEST(RepositoryConfig, ComesBackAsItWas) {
  const Result<RepositoryConfig> back = DecodeRepositoryConfig(EncodeRepositoryConfig(SampleConfig()), "/x");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->id, SampleConfig().id);
  EXPECT_EQ(back->chunks, ChunkSizes());
  ASSERT_TRUE(back->encryption);
  EXPECT_EQ(back->encryption->n, 65'536);
  EXPECT_EQ(back->encryption->salt, std::string(32, 's'));
  EXPECT_EQ(back->encryption->master, std::string(60, 'm'));
  RepositoryConfig plain = SampleConfig();
  plain.encryption.reset();
  EXPECT_FALSE(DecodeRepositoryConfig(EncodeRepositoryConfig(plain), "/x")->encryption);
}

// The config of docs/formats/snapshot.md.
TEST(RepositoryConfig, HasTheFormOfTheFormat) {
  RepositoryConfig plain = SampleConfig();
  plain.encryption.reset();
  EXPECT_EQ(EncodeRepositoryConfig(plain),
            "{\"format\":\"overcap repository\",\"version\":2,\"id\":\"00112233445566778899aabbccddeeff\","
            "\"chunk_min\":262144,\"chunk_average\":1048576,\"chunk_max\":4194304,\"segment\":67108864,"
            "\"encryption\":null,\"check\":"
            "\"e974d51337f4ff3936d9b4bd0eecf2229c12f738e01f4a982ca6b1a42074bce0\"}\n");
}

TEST(RepositoryConfig, AnyFlippedBitIsFound) {
  const std::string good = EncodeRepositoryConfig(SampleConfig());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const Result<RepositoryConfig> config = DecodeRepositoryConfig(bad, "/x");
    ASSERT_FALSE(config) << bit;
    EXPECT_EQ(config.error().code, ErrorCode::kCorrupt) << bit;
  }
}

// As somebody would write it who knows the format.
std::string WithCheck(const std::string& body) {
  return StrCat(body, ",\"check\":\"", Sha256Of(body).Hex(), "\"}\n");
}

TEST(RepositoryConfig, WhatIsOutOfBoundsIsRefused) {
  const std::string whole = EncodeRepositoryConfig(SampleConfig());
  const std::string good = whole.substr(0, whole.rfind(",\"check\""));
  ASSERT_TRUE(DecodeRepositoryConfig(WithCheck(good), "/x"));
  EXPECT_TRUE(DecodeRepositoryConfig(WithCheck(good + ",\"more\":1"), "/x"));
  EXPECT_EQ(
      DecodeRepositoryConfig(WithCheck(Replaced(good, "\"version\":2", "\"version\":3")), "/x").error().code,
      ErrorCode::kConflict);
  for (const std::string& bad :
       {Replaced(good, "262144", "0"), Replaced(good, "262144", "2097152"),
        Replaced(good, "4194304", "9000000"), Replaced(good, "67108864", "1"),
        Replaced(good, "67108864", "99999999999"), Replaced(good, "0011", "00g1"),
        Replaced(good, "scrypt", "md5"), Replaced(good, "aes-256-gcm", "rot13"),
        Replaced(good, "\"n\":65536", "\"n\":-1"), Replaced(good, "\"salt\":\"", "\"salt\":\"00"),
        Replaced(good, "\"encryption\":", "\"encrypted\":")})
    EXPECT_EQ(DecodeRepositoryConfig(WithCheck(bad), "/x").error().code, ErrorCode::kCorrupt) << bad;
}

}  // namespace
}  // namespace overcap
