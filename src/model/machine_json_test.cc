// SPDX-License-Identifier: Apache-2.0
#include "model/machine_json.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(MachineJson, ReadsBackWhatItWrote) {
  const Machine machine{.host = "here",
                        .cpus = 8,
                        .mem_bytes = 1LL << 34,
                        .gpus = {{.index = 1, .type = "a40", .uuid = "GPU-1", .memory_bytes = 48LL << 30}},
                        .declared = true,
                        .cpu_ids = {8, 9, 10, 11, 12, 13, 14, 15}};
  const auto read = MachineFromJson(MachineToJson(machine));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, machine);
}

TEST(MachineJson, AnythingElseIsCorrupt) {
  for (const char* text :
       {"", "[]", "{}", R"({"cpus":"many","gpus":[]})", R"({"cpus":1,"gpus":[],"cpu_ids":"8"})"}) {
    const auto read = MachineFromJson(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace overcap
