// SPDX-License-Identifier: Apache-2.0
#include "model/job_store.h"

#include <gtest/gtest.h>

#include "model/job_record.h"
#include "model/job_spec.h"

namespace overcap {
namespace {

const JobStore kStore{"s3://bucket/prefix", {{"endpoint", "http://127.0.0.1:9"}, {"path_style", "true"}}};

TEST(JobStore, ComesBackFromItsText) {
  const auto back = JobStoreFromJson(JobStoreToJson(kStore));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, kStore);
}

TEST(JobStore, IsRefusedWithoutAPlaceOrWithOtherThanTexts) {
  for (const char* text : {"", "[]", "{}", R"({"at": ""})", R"({"at": 1})", R"({"at": "x", "region": {}})"})
    EXPECT_FALSE(JobStoreFromJson(text)) << text;
}

TEST(JobStore, IsPartOfASpecAndOfARecord) {
  JobSpec spec;
  spec.id = "u-1";
  spec.store = kStore;
  const auto back = SpecFromJson(SpecToJson(spec));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->store, kStore);
  JobRecord record;
  record.spec = spec;
  const auto read = RecordFromJson(RecordToJson(record, 0));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->spec.store, kStore);
}

TEST(JobStore, OfMostJobsThereIsNone) {
  EXPECT_EQ(SpecToJson(JobSpec{}).find("store"), std::string::npos);
}

}  // namespace
}  // namespace overcap
