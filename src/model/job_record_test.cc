// SPDX-License-Identifier: Apache-2.0
#include "model/job_record.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

rc::Gen<std::string> Bytes() {
  return rc::gen::container<std::string>(rc::gen::inRange<char>(-128, 127));
}
rc::Gen<int64_t> Time() {
  return rc::gen::inRange<int64_t>(0, 4'000'000'000'000'000);
}
rc::Gen<int> Small() {
  return rc::gen::inRange(-1, 1000);
}

JobSpec AnySpec() {
  JobSpec spec;
  spec.id = *Bytes();
  spec.cluster = *Bytes();
  spec.lab = "vision";
  spec.user = *Bytes();
  spec.name = *Bytes();
  spec.command = *rc::gen::container<std::vector<std::string>>(Bytes());
  spec.resources = {*Small(), *Small(), *Small(), *Small(), *Small(), *Time(), *Time(), *Bytes()};
  if (*rc::gen::arbitrary<bool>()) spec.array = *ParseArraySpec("0-9,20-30:5%3");
  spec.snapshot = *Bytes();
  spec.source = *Bytes();
  spec.workdir = *Bytes();
  if (*rc::gen::arbitrary<bool>()) spec.after = {{*Bytes(), false}};
  spec.resubmit_of = *Bytes();
  spec.priority = *Small();
  spec.submitted_us = *Time();
  return spec;
}

Ending AnyEnding() {
  return {static_cast<JobState>(*rc::gen::inRange(0, 9)), *Small(), *Small(), *Small(), *Bytes()};
}

JobRecord AnyRecord() {
  JobRecord record;
  record.spec = AnySpec();
  record.state = static_cast<JobState>(*rc::gen::inRange(0, 9));
  record.raw_state = *Bytes();
  record.reason = *Bytes();
  record.attempt = *Small();
  record.restarts = *Small();
  record.partition = *Bytes();
  record.preemptions = *Small();
  record.preempted_by = *Bytes();
  record.cluster_job = *Bytes();
  record.node_list = *Bytes();
  record.spec.placement.partitions = *rc::gen::container<std::vector<std::string>>(Bytes());
  record.exit_status = *Small();
  record.signal = *Small();
  record.first_failed_rank = *Small();
  record.started_us = *Time();
  record.ended_us = *Time();
  record.gpu_indices = *rc::gen::container<std::vector<int>>(Small());
  if (!record.spec.array.empty())
    record.tasks = {*Small(), *Small(), *Small(), *Small(), *Small(), *Small(), *Small()};
  record.first_failed_task = *Small();
  if (*rc::gen::arbitrary<bool>()) record.failed_tasks = {{*Small(), *Small(), AnyEnding()}};
  record.dir = *Bytes();
  if (*rc::gen::arbitrary<bool>()) record.logs = {{1, 2, -1, *Bytes()}, {3, 4, 5, *Bytes()}};
  return record;
}

RC_GTEST_PROP(JobRecordTest, AnyRecordComesBackFromJson, ()) {
  const JobRecord record = AnyRecord();
  const std::string json = RecordToJson(record, 0);
  RC_LOG() << json;
  const auto read = RecordFromJson(json);
  RC_ASSERT(read.has_value());
  RC_ASSERT(RecordToJson(*read, 0) == json);
  RC_ASSERT(*read == record);
}

TEST(JobRecordTest, AQueuedJobHasNullsWhereThereIsNoValueYet) {
  JobRecord record;
  record.spec.id = "ann_1_00000000";
  record.spec.cluster = "local";
  record.spec.user = "ann";
  record.spec.command = {"true", "a  b"};
  record.spec.submitted_us = 1'000'000;
  record.state = JobState::kQueued;
  record.dir = "/r/jobs/ann_1_00000000";
  EXPECT_EQ(
      RecordToJson(record, 2'000'000),
      R"({"id":"ann_1_00000000","cluster":"local","user":"ann","lab":null,"name":null,"state":"queued","reason":null,)"
      R"("attempt":0,"exit_status":null,"signal":null,"first_failed_rank":null,"command":["true","a  b"],)"
      R"("gpus":0,"nodes":1,"max_nodes":null,"ranks_per_node":1,"cpus":null,"mem_bytes":null,"time_seconds":null,)"
      R"("gpu_type":null,"array":null,"tasks":null,"first_failed_task":null,"failed_tasks":null,"snapshot":null,"source":null,"workdir":null,)"
      R"("submitted":"1970-01-01T00:00:01.000000Z","started":null,"ended":null,"elapsed_s":null,)"
      R"("dir":"/r/jobs/ann_1_00000000","logs":[],"after":[],"resubmit_of":null,"priority":0,"restarts":0,)"
      R"("partition":null,"partitions":[],"preemptions":0,"preempted_by":null,"gpu_indices":[]})");
}

TEST(JobRecordTest, AnArrayHasTaskCountsAndLogsWithTheirTask) {
  JobRecord record;
  record.spec.array = *ParseArraySpec("0-9%2");
  record.state = JobState::kRunning;
  record.started_us = 1'000'000;
  record.tasks = {10, 5, 2, 2, 1, 0, 0};
  record.first_failed_task = 4;
  record.failed_tasks = {{4, 2, {JobState::kFailed, 137, 9, 1, ""}}};
  record.logs = {{1, 0, 7, "/x/task-7.rank-0.log"}};
  const std::string json = RecordToJson(record, 3'500'000);
  EXPECT_NE(
      json.find(
          R"("array":"0-9%2","tasks":{"total":10,"queued":5,"running":2,"succeeded":2,"failed":1,"lost":0,"not_run":0},)"
          R"("first_failed_task":4,"failed_tasks":[{"task":4,"state":"failed","try":2,"exit_status":137,"signal":9,)"
          R"("first_failed_rank":1,"reason":null}])"),
      std::string::npos);
  EXPECT_NE(json.find(R"("logs":[{"attempt":1,"rank":0,"task":7,"path":"/x/task-7.rank-0.log"}])"),
            std::string::npos);
  EXPECT_NE(json.find(R"("elapsed_s":2.5,)"), std::string::npos);
}

TEST(JobRecordTest, AClockSetBackGivesNoNegativeElapsedTime) {
  JobRecord record;
  record.state = JobState::kRunning;
  record.started_us = 5'000'000;
  EXPECT_NE(RecordToJson(record, 1'000'000).find(R"("elapsed_s":0,)"), std::string::npos);
}

TEST(JobRecordTest, AStateOfANewerOvercapIsKeptAsItsWord) {
  const auto record = RecordFromJson(R"({"id":"x","state":"frozen"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, JobState::kUnknown);
  EXPECT_EQ(record->raw_state, "frozen");
}

TEST(JobRecordTest, WhatIsNoRecordIsAnError) {
  for (const char* text :
       {"", "[]", R"({"state":1})", R"({"started":"yesterday"})", R"({"started":"2026-02-30T00:00:00Z"})",
        R"({"tasks":[]})", R"({"logs":[1]})", R"({"logs":[{"rank":"x"}]})", R"({"gpu_indices":["a"]})",
        R"({"array":"x"})", R"({"failed_tasks":[1]})", R"({"failed_tasks":[{"task":"x"}]})",
        R"({"gpus":1e99})"}) {
    EXPECT_FALSE(RecordFromJson(text)) << text;
  }
}

}  // namespace
}  // namespace overcap
