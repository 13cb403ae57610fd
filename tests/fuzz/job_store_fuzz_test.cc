// SPDX-License-Identifier: Apache-2.0
// What a spec says of a job's store, and keys that somebody has put beside segments.
#include "inputs.h"
#include "model/job_store.h"
#include "stores/mem/mem_store.h"
#include "stores/segment_keys.h"
#include "stores/stored_log_reader.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {"null", "true", "-1",     "1e999",   "[",   "{",
                                         "}",    "\"\"", "\"at\"", "\\u0000", "\xff"};

TEST(JobStoreFuzz, StoresOfSpecsAreReadOrRefused) {
  const std::string sample =
      JobStoreToJson({"s3://bucket/prefix", {{"endpoint", "http://x"}, {"region", "r"}}});
  ForEachInput(Mutator({sample}, kWords, 1).Gently(), [](const std::string& json) {
    const auto read = JobStoreFromJson(json);
    if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
    EXPECT_EQ(JobStoreFromJson(JobStoreToJson(*read)), *read);
    return true;
  });
}

TEST(JobStoreFuzz, AReaderEndsWhateverStandsBesideTheSegments) {
  ForEachInput(
      Mutator({"0000000000000000", "0000000000000007", "9999999999999999"}, {"0", "9", "/", "-", "."}, 2)
          .Gently(),
      [](const std::string& name) {
        MemStore store;
        EXPECT_TRUE(store.Put(SegmentKey("f", 0), "1234567"));
        if (IsKey("f/" + name, KeyRule::kPlain)) {
          EXPECT_TRUE(store.Put("f/" + name, "abc"));
        }
        StoredLogReader reader(store, "f");
        size_t size = 0;
        for (int i = 0; i < 50; ++i) size += reader.Read(100).value_or("").size();
        EXPECT_LT(size, 200u);
        StoredLogReader tail(store, "f");
        EXPECT_TRUE(tail.SeekToTail(2, 1000));
        return true;
      });
}

}  // namespace
}  // namespace overcap
