// SPDX-License-Identifier: Apache-2.0
#include "model/mount_spec.h"

#include <gtest/gtest.h>

#include "model/job_spec.h"

namespace overcap {
namespace {

MountSpec Mount(std::string name, std::string at) {
  MountSpec mount;
  mount.name = std::move(name);
  mount.store = "s3://bucket/x";
  mount.at = std::move(at);
  return mount;
}

std::string Wrong(const std::vector<MountSpec>& mounts) {
  const auto checked = CheckMounts(mounts);
  return checked ? "" : checked.error().message;
}

TEST(MountSpec, ComesBackFromASpecAsItWas) {
  JobSpec spec;
  spec.mounts_at = "/scratch/me";
  spec.mounts = {Mount("data", "in/data"), Mount("out", "out")};
  spec.mounts[0].mode = MountMode::kCopyRead;
  spec.mounts[0].cache_bytes = int64_t{50} << 30;
  spec.mounts[1].mode = MountMode::kWrite;
  spec.mounts[1].mounter = "rclone";
  spec.mounts[1].options = {"--vfs-cache-mode", "full"};
  spec.mounts[1].access = {{"endpoint", "http://x"}, {"path_style", "true"}};
  const auto back = SpecFromJson(SpecToJson(spec));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, spec);
}

TEST(MountSpec, APlaceMustBeInTheFolder) {
  for (const char* at : {"/data", "../x", "a/../b", "a//b", "a/", ".", "", "a\nb"})
    EXPECT_NE(Wrong({Mount("data", at)}), "") << at;
  for (const char* at : {"data", "in/data", ".cache", "with blank"})
    EXPECT_EQ(Wrong({Mount("data", at)}), "") << at;
}

TEST(MountSpec, NoTwoStandInEachOthersWay) {
  EXPECT_EQ(Wrong({Mount("a", "data"), Mount("b", "data2")}), "");
  EXPECT_EQ(Wrong({Mount("a", "data"), Mount("b", "data/x")}),
            "mount 'b': 'data/x' is in the way of mount 'a' at 'data'");
  EXPECT_EQ(Wrong({Mount("a", "d/x/y"), Mount("b", "d/x")}),
            "mount 'b': 'd/x' is in the way of mount 'a' at 'd/x/y'");
  EXPECT_EQ(Wrong({Mount("a", "x"), Mount("a", "y")}), "mount 'a': stands there a second time");
}

TEST(MountSpec, WhatMeansNothingIsRefused) {
  MountSpec mount = Mount("data", "data");
  for (const char* name : {"-x", "fuse\nfoo"}) {
    mount.mounter = name;
    EXPECT_NE(Wrong({mount}), "") << name;
  }
  for (const char* name : {"rclone", "sshfs"}) {  // stored specs may have raw mounters without options
    mount.mounter = name;
    EXPECT_EQ(Wrong({mount}), "") << name;
  }
  mount.mode = MountMode::kCopy;
  EXPECT_EQ(Wrong({mount}), "mount 'data': 'mounter' and 'options' mean nothing to a copy");
  mount = Mount("data", "data");
  mount.cache_bytes = 10;
  EXPECT_NE(Wrong({mount}), "");
  EXPECT_NE(Wrong({Mount("-x", "x")}), "");
  EXPECT_NE(Wrong(std::vector<MountSpec>(kMostMounts + 1, Mount("x", "x"))), "");
}

TEST(MountSpec, OnlyFoldersThatAreNotCopiedAreLinked) {
  MountSpec mount = Mount("data", "data");
  EXPECT_FALSE(IsLinkedFolder(mount));
  mount.store = "/nfs/data";
  EXPECT_TRUE(IsLinkedFolder(mount));
  mount.mode = MountMode::kCopyRead;
  EXPECT_FALSE(IsLinkedFolder(mount));
}

}  // namespace
}  // namespace overcap
