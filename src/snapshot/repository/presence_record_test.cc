// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/presence_record.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/process_mark.h"

namespace overcap {
namespace {

WriterRecord SampleWriter() {
  WriterRecord record;
  record.process = {"node07", 4711, "boot", "pid:[1]", 99};
  record.began_us = 1'700'000'000'000'000;
  record.beat = 12;
  record.knows = {std::string(32, 'a'), std::string(32, 'b')};
  return record;
}

TEST(PresenceRecord, AWriterIsReadBack) {
  const WriterRecord record = SampleWriter();
  EXPECT_EQ(DecodeWriterRecord(EncodeWriterRecord(record), "writers/x"), record);
  EXPECT_EQ(DescribeWriter(record), "node07, pid 4711");
  WriterRecord prune = record;
  prune.prune = true;
  EXPECT_EQ(DecodeWriterRecord(EncodeWriterRecord(prune), "writers/x"), prune);
}

TEST(PresenceRecord, CondemnedPacksAreReadBack) {
  const CondemnedRecord record{{Sha256Of("a"), Sha256Of("b")}, 5};
  EXPECT_EQ(DecodeCondemnedRecord(EncodeCondemnedRecord(record), "condemned/x"), record);
  EXPECT_EQ(DecodeCondemnedRecord(EncodeCondemnedRecord({}), "condemned/x"), CondemnedRecord());
}

TEST(PresenceRecord, EveryFlippedBitIsNoticed) {
  const std::string bytes = EncodeCondemnedRecord({{Sha256Of("a")}, 5});
  const std::string writer = EncodeWriterRecord(SampleWriter());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_EQ(DecodeCondemnedRecord(flipped, "condemned/x").error().code, ErrorCode::kCorrupt) << bit;
  }
  for (size_t bit = 0; bit < writer.size() * 8; ++bit) {
    std::string flipped = writer;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(DecodeWriterRecord(flipped, "writers/x")) << bit;
  }
}

// JSON that somebody else wrote: other types than expected harm nothing.
TEST(PresenceRecord, MembersOfOtherTypesCountAsMissing) {
  const std::string json = R"({"host":7,"pid":"x","knows":{"a":1},"prune":"yes","beat":null})";
  const std::string bytes = json + "\n" + Sha256Of(json).Hex() + "\n";
  EXPECT_EQ(DecodeWriterRecord(bytes, "writers/x"), WriterRecord());
  const std::string packs = R"({"packs":["zz"]})";
  EXPECT_FALSE(DecodeCondemnedRecord(packs + "\n" + Sha256Of(packs).Hex() + "\n", "condemned/x"));
}

TEST(ObjectKeys, OnlyRightNamesAreParsed) {
  const Digest id = Sha256Of("pack");
  EXPECT_EQ(ParsePackKey(PackKey(id)), id);
  EXPECT_EQ(ParseIndexKey(IndexKey(id)), id);
  EXPECT_FALSE(ParsePackKey("packs/00/" + id.Hex()));
  EXPECT_FALSE(ParsePackKey(PackKey(id) + "0"));
  SeededRandom random(1);
  const std::string writer = NewPresenceId(random);
  EXPECT_EQ(ParsePresenceKey(kWritersPrefix, WriterKey(writer)), writer);
  EXPECT_FALSE(ParsePresenceKey(kCondemnedPrefix, WriterKey(writer)));
  EXPECT_FALSE(ParsePresenceKey(kWritersPrefix, "writers/" + std::string(32, 'g')));
}

TEST(ProcessMark, AProcessThatLivesIsNotGoneAndOneThatEndedIs) {
  const ProcessMark own = OwnProcessMark();
  EXPECT_FALSE(SurelyGone(own));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    char wait;
    _exit(static_cast<int>(read(ends[0], &wait, 1)));
  }
  ProcessMark mark = own;
  mark.pid = child;
  EXPECT_TRUE(SurelyGone({own.host, child, own.boot, own.pid_space, 1}))
      << "another process has that pid now";
  close(ends[0]);
  close(ends[1]);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(SurelyGone(mark));
  mark.boot = "another";
  EXPECT_FALSE(SurelyGone(mark)) << "of another machine nothing is known";
  mark = own;
  mark.pid = 0;
  EXPECT_FALSE(SurelyGone(mark));
}

}  // namespace
}  // namespace overcap
