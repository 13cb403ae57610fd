// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mount_table.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kTable =
    "22 27 0:20 / /proc rw,nosuid - proc proc rw\n"
    "122 27 0:44 / /tmp/m/job/data rw,nosuid,nodev - fuse.rclone overcap:b rw,user_id=0\n"
    "123 27 0:45 / /tmp/m/job/a\\040b rw - fuse.sshfs host: rw\n"
    "124 27 0:46 / /tmp/m/job/data/in rw - tmpfs tmpfs rw\n"
    "125 27 0:47 / /tmp/m/job2 rw - tmpfs tmpfs rw\n"
    "cut off";

TEST(MountTable, FindsTheDeepestFirst) {
  EXPECT_EQ(MountPointsIn(kTable, "/tmp/m/job"),
            (Words{"/tmp/m/job/data/in", "/tmp/m/job/data", "/tmp/m/job/a b"}));
  EXPECT_EQ(MountPointsIn(kTable, "/tmp/m/job2"), (Words{"/tmp/m/job2"}));
  EXPECT_TRUE(MountPointsIn(kTable, "/tmp/m/jo").empty());
}

TEST(MountTable, ThisMachineHasProc) {
  const auto mounts = MountsBelow("/proc");
  ASSERT_TRUE(mounts);
  EXPECT_NE(std::find(mounts->begin(), mounts->end(), "/proc"), mounts->end());
  EXPECT_EQ(RemoveUnmounted("/proc").error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace overcap
