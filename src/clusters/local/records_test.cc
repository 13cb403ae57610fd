// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/records.h"

#include <gtest/gtest.h>

#include "clusters/local/engine_client.h"

namespace overcap {
namespace {

TEST(EngineReply, ReadsTheRowsOfATable) {
  const auto records = ReadRows(
      R"({"counts":{"queued":1},"rows":[["ann_1_00000001","ann","vision","short","n\"m","failed","why",2,3,["a b",{"hex":"ff00"}],4,1,10,20,30,"0-9%2"]]})",
      ListDetail::kTable);
  ASSERT_TRUE(records) << records.error().message;
  JobRecord wanted;
  wanted.spec.id = "ann_1_00000001";
  wanted.spec.user = "ann";
  wanted.spec.lab = "vision";
  wanted.partition = "short";
  wanted.spec.name = "n\"m";
  wanted.state = JobState::kFailed;
  wanted.reason = "why";
  wanted.attempt = 2;
  wanted.exit_status = 3;
  wanted.spec.command = {"a b", std::string("\xff\0", 2)};
  wanted.spec.resources.gpus = 4;
  wanted.spec.submitted_us = 10;
  wanted.started_us = 20;
  wanted.ended_us = 30;
  wanted.spec.array = *ParseArraySpec("0-9%2");
  EXPECT_EQ(*records, std::vector<JobRecord>{wanted});
}

TEST(EngineReply, AnUnknownStateIsKeptAsItIs) {
  const auto records = ReadRows(R"({"rows":[["a_1_00000001","frozen","",""]]})", ListDetail::kStored);
  ASSERT_TRUE(records);
  EXPECT_EQ(records->front().state, JobState::kUnknown);
  EXPECT_EQ(records->front().raw_state, "frozen");
}

TEST(EngineReply, RowsOfAnotherShapeAreRefused) {
  EXPECT_FALSE(ReadRows(R"({"rows":[["a"]]})", ListDetail::kTable));
  EXPECT_FALSE(ReadRows(R"({"jobs":[]})", ListDetail::kTable));
  EXPECT_FALSE(ReadRecords(R"({"rows":[]})"));
}

TEST(EngineReply, OkIsOpened) {
  EXPECT_EQ(*OpenReply(R"({"ok":{"removed":1}})"), R"({"removed":1})");
}

TEST(EngineReply, AnErrorKeepsItsCodeAndHint) {
  const auto reply = OpenReply(R"({"error":{"code":"conflict","message":"no","hint":"type"}})");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kConflict);
  EXPECT_EQ(reply.error().message, "no");
  EXPECT_EQ(reply.error().hint, "type");
}

TEST(EngineReply, AnythingElseIsABug) {
  for (const char* frame : {"", "{}", "[1]", "{\"ok\":"}) {
    const auto reply = OpenReply(frame);
    ASSERT_FALSE(reply) << frame;
    EXPECT_EQ(reply.error().code, ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace overcap
