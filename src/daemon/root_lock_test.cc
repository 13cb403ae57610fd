// SPDX-License-Identifier: Apache-2.0
#include "daemon/root_lock.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(RootLockTest, WhatAnEarlierProgramWroteIsItsPidAlone) {
  EXPECT_EQ(ParseLockHolder("123\n").pid, 123);
  EXPECT_EQ(ParseLockHolder("123\n").host, "");
  EXPECT_EQ(ParseLockHolder("").pid, 0);
  const LockHolder holder = ParseLockHolder(
      "7\n{\"host\":\"gpu1/5d\",\"boot_id\":\"b\",\"ended\":true,\"opened_host\":\"gpu1/"
      "5d\",\"opened_boot_id\":\"a\"}\n");
  EXPECT_EQ(holder.pid, 7);
  EXPECT_EQ(holder.host, "gpu1/5d");
  EXPECT_TRUE(holder.ended);
  EXPECT_EQ(holder.opened_boot_id, "a");
}

TEST(RootLockTest, LocksOfSomeFileSystemsAreSeenOnOneHostAlone) {
  const auto stays = [](const std::string& type, const std::string& options) {
    const std::string line =
        "36 35 0:50 / /home rw,relatime shared:1 - " + type + " server:/home rw," + options + "\n";
    return LocksStayOnHost("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + line, "0:50");
  };
  EXPECT_FALSE(stays("nfs4", "vers=4.2,local_lock=none"));
  EXPECT_FALSE(stays("xfs", "attr2"));
  EXPECT_FALSE(stays("lustre", "flock"));
  EXPECT_TRUE(stays("nfs", "vers=3,nolock,local_lock=all"));
  EXPECT_TRUE(stays("nfs", "vers=3,local_lock=flock"));
  EXPECT_TRUE(stays("lustre", "localflock"));
  EXPECT_TRUE(stays("fuse.sshfs", "user_id=0"));
  EXPECT_FALSE(LocksStayOnHost("", "0:50")) << "not listed";
}

}  // namespace
}  // namespace overcap
