// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup_places.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(CgroupPlacesTest, FindsTheOwnFolderUnderV2) {
  const CgroupPlaces places =
      ParseCgroupPlaces("0::/user.slice/user-1000.slice/session-2.scope\n",
                        "24 1 0:22 / /proc rw - proc proc rw\n"
                        "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_EQ(places.v2,
            (CgroupPlace{"/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope"}));
  EXPECT_TRUE(places.v1.empty());
  EXPECT_EQ(places.v2.Upwards(),
            (std::vector<std::string>{"/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope",
                                      "/sys/fs/cgroup/user.slice/user-1000.slice",
                                      "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}));
}

TEST(CgroupPlacesTest, FindsEachControllerUnderV1) {
  const CgroupPlaces places =
      ParseCgroupPlaces("4:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/x\n",
                        "31 30 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n"
                        "32 30 0:28 / /cg/my\\040cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  ASSERT_EQ(places.v1.size(), 3u);
  EXPECT_EQ(places.v1.at("memory").folder, "/cg/memory/a/b");
  EXPECT_EQ(places.v1.at("cpu").folder, "/cg/my cpu");
  EXPECT_EQ(places.v1.at("cpuacct").folder, "/cg/my cpu");
  EXPECT_TRUE(places.v2.folder.empty());
  EXPECT_TRUE(places.v2.Upwards().empty());
}

TEST(CgroupPlacesTest, AContainersMountShowsOnlyItsOwnPart) {
  const std::string mounts = "31 30 0:27 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n";
  EXPECT_EQ(ParseCgroupPlaces("4:memory:/docker/abc/x\n", mounts).v1.at("memory").folder, "/cg/memory/x");
  EXPECT_EQ(ParseCgroupPlaces("4:memory:/docker/abc\n", mounts).v1.at("memory").folder, "/cg/memory");
  EXPECT_TRUE(ParseCgroupPlaces("4:memory:/docker/abcdef\n", mounts).v1.empty());
  EXPECT_TRUE(ParseCgroupPlaces("4:memory:/other\n", mounts).v1.empty());
}

TEST(CgroupPlacesTest, GarbageGivesNothing) {
  const CgroupPlaces places = ParseCgroupPlaces("x\n:\n9\n", "a b c\n - \n1 2 3 - cgroup2\n");
  EXPECT_TRUE(places.v1.empty());
  EXPECT_TRUE(places.v2.folder.empty());
}

}  // namespace
}  // namespace overcap
