// SPDX-License-Identifier: Apache-2.0
#include "control/allocations.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace overcap {
namespace {

HeldAllocation Dev() {
  HeldAllocation allocation;
  allocation.name = "dev", allocation.job = "ann_1_00000001", allocation.cluster = "sky";
  allocation.home = "/h/\xFF", allocation.binary = "/opt/overcap", allocation.config = "/p/overcap.yaml";
  allocation.variables = {"PATH=/usr/bin", "SLURM_CONF=/etc/s"};
  allocation.user = "ann", allocation.jump = "login", allocation.made_us = 7;
  return allocation;
}

class AllocationsTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/overcap_alloc_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    root_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string root_;
};

TEST_F(AllocationsTest, WhatIsWrittenIsReadBack) {
  const auto read = AllocationFromJson(AllocationToJson(Dev()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Dev());
  for (const char* bad : {"", "[]", "{}", "{\"name\": 3}", "{\"name\": \"../x\"}"}) {
    EXPECT_FALSE(AllocationFromJson(bad)) << bad;
  }
}

TEST_F(AllocationsTest, ANameIsTakenOnceAndFreedByItsOwnJobOnly) {
  AllocationBook book(root_);
  ASSERT_TRUE(book.Add(Dev()));
  HeldAllocation other = Dev();
  other.job = "ann_2_00000002";
  EXPECT_EQ(book.Add(other).error().code, ErrorCode::kConflict);
  book.Forget(other);
  EXPECT_EQ(book.All(), std::vector<HeldAllocation>{Dev()});
  book.Forget(Dev());
  EXPECT_EQ(book.Find("dev"), std::nullopt);
  EXPECT_TRUE(book.Add(other));
}

TEST_F(AllocationsTest, NamesCannotLeaveTheFolderOrMeanJobs) {
  for (const char* bad : {"", "last", "../dev", ".dev", "a b", "-x", "a/b", "\n"}) {
    EXPECT_EQ(CheckAllocationName(bad).error().code, ErrorCode::kUsage) << bad;
    EXPECT_EQ(AllocationBook(root_).Find(bad), std::nullopt);
  }
  EXPECT_FALSE(CheckAllocationName(std::string(41, 'a')));
  EXPECT_TRUE(CheckAllocationName("dev-2.x_Y"));
}

TEST(Allocations, SshGoesIntoTheJobUnlessAJumpIsAskedFor) {
  HeldAllocation allocation = Dev();
  EXPECT_TRUE(SshHostOf(allocation, "/r/allocations/dev.json", "n1", 2).proxy.empty());
  allocation.jump.clear();
  const SshHost host = SshHostOf(allocation, "/r/allocations/dev.json", "n1", 2);
  EXPECT_EQ(host.proxy,
            (std::vector<std::string>{"/opt/overcap", "alloc", "connect", "/r/allocations/dev.json"}));
  EXPECT_EQ(host.key, "/r/ssh/id");
}

}  // namespace
}  // namespace overcap
