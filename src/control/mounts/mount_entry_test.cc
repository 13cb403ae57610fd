// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mount_entry.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Words = std::vector<std::string>;

std::string WrongFlag(const std::string& text) {
  const auto parsed = ParseMountFlag(text);
  return parsed ? "" : parsed.error().message;
}

TEST(MountFlag, NamesAStoreAndHowItIsMounted) {
  const auto mount = ParseMountFlag(
      "data=az://acct/cont/a,b,at=in/data,mode=rw,cache=50G,mounter=rclone,option=-v,option=--a=b,c");
  ASSERT_TRUE(mount) << mount.error().message;
  EXPECT_EQ(mount->name, "data");
  EXPECT_EQ(mount->entry.store, "az://acct/cont/a,b");
  EXPECT_EQ(mount->entry.at, "in/data");
  EXPECT_EQ(mount->entry.mode, MountMode::kWrite);
  EXPECT_EQ(mount->entry.cache_bytes, int64_t{50} << 30);
  EXPECT_EQ(mount->entry.mounter, "rclone");
  EXPECT_EQ(mount->entry.options, (Words{"-v", "--a=b,c"}));
}

TEST(MountFlag, AloneIsAStoreOfThatName) {
  const auto mount = ParseMountFlag("data,mode=copy");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->entry.store, "");
  const auto spec = CheckedMount(mount->name, mount->entry);
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->store, "data");
  EXPECT_EQ(spec->at, "data");
}

TEST(MountFlag, WhatIsWrongIsSaid) {
  EXPECT_EQ(WrongFlag("data="), "no store behind '=' in 'data='");
  EXPECT_EQ(WrongFlag("data=x,mode=wo"), "'mode' must be ro, rw, copy or copy-ro, not 'wo'");
  EXPECT_EQ(WrongFlag("data=x,cache=many"), "'cache' must be a size like 50G, not 'many'");
  EXPECT_EQ(WrongFlag("data=x,at=../y"),
            "mount 'data': 'at' is '../y', it must be a path in the job's folder");
  EXPECT_EQ(WrongFlag("data=x,mdoe=rw"), "unknown key 'mdoe'");
  EXPECT_EQ(WrongFlag("data=x,mode=rw,cahce=1G"), "unknown key 'cahce'");
  EXPECT_EQ(ParseMountFlag("data=s3://b/x,mdoe=rw").error().hint,
            "did you mean 'mode'? A location with ',mdoe=' in it can be given a name in 'stores:'");
  EXPECT_EQ(WrongFlag("data=s3://b/year=2024,month=7,option=-v,mdoe=1"), "");  // neither is nearly a key
  EXPECT_EQ(WrongFlag("=x"), "'' is no name of a mount");
  EXPECT_EQ(WrongFlag("data=x,mode=copy,option=-v"),
            "mount 'data': 'mounter' and 'options' mean nothing to a copy");
}

TEST(MountEntry, AFieldThatIsNoneIsNamed) {
  MountEntry entry;
  const auto wrong = SetMountField("mod", "ro", &entry);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "unknown key 'mod'");
  EXPECT_EQ(wrong.error().hint, "did you mean 'mode'?");
  EXPECT_FALSE(SetMountField("at", "a\nb", &entry));
  EXPECT_TRUE(SetMountField("options", "-o 'a b'", &entry));
  EXPECT_EQ(entry.options, (Words{"-o", "a b"}));
}

}  // namespace
}  // namespace overcap
