// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_handle.h"

#include <gtest/gtest.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

class SlurmHandleTest : public testing::Test {
 protected:
  void Write(const std::string& text) {
    ASSERT_TRUE(files_.WriteAtomic(folder_.Path() + "/handle.json", text, false));
  }
  Result<bool> Agree(int64_t id) { return AgreeOnHandle(folder_.Path(), "sky", id, &files_); }
  TempFolder folder_;
  PosixFiles files_;
};

TEST_F(SlurmHandleTest, WhoComesFirstMakesIt) {
  EXPECT_TRUE(*Agree(12));
  EXPECT_EQ(*files_.Read(folder_.Path() + "/handle.json"),
            "{\"driver\":\"slurm\",\"cluster\":\"sky\",\"slurm_id\":12,\"made_by\":\"agent\"}\n");
}

TEST_F(SlurmHandleTest, OnlyTheJobThatItNamesIsTheJob) {
  Write("{\"driver\": \"slurm\", \"cluster\": \"sky\", \"slurm_id\": 12, \"made_by\": \"submit\"}");
  EXPECT_TRUE(*Agree(12));
  EXPECT_FALSE(*Agree(13));
  EXPECT_TRUE(*Agree(12));
}

TEST_F(SlurmHandleTest, NothingIsConcludedFromOneThatCannotBeRead) {
  Write("{\"driver\": ");
  EXPECT_FALSE(Agree(12));
}

}  // namespace
}  // namespace overcap
