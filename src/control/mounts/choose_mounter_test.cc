// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/choose_mounter.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

const NodeTools kFull = {true, true, {"blobfuse2", "mount-s3", "rclone", "goofys", "sshfs"}};

MountSpec Of(MountMode mode, std::string mounter = "", int64_t cache = 0) {
  MountSpec mount;
  mount.name = mount.at = "data";
  mount.store = "s3://bucket";
  mount.mode = mode;
  mount.mounter = std::move(mounter);
  mount.cache_bytes = cache;
  return mount;
}

std::string Chosen(const MountSpec& mount, StoreKind kind, const NodeTools& node) {
  const auto chosen = ChooseMounters(mount, kind, node);
  return chosen ? Join(*chosen, " ") : chosen.error().message;
}

TEST(ChooseMounter, TakesTheOneThatReadsOrWritesBest) {
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kS3, kFull), "mount-s3 rclone goofys");
  EXPECT_EQ(Chosen(Of(MountMode::kWrite), StoreKind::kS3, kFull), "rclone goofys mount-s3");
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kAzure, kFull), "blobfuse2 rclone");
  EXPECT_EQ(Chosen(Of(MountMode::kWrite), StoreKind::kAzure, kFull), "blobfuse2 rclone");
  EXPECT_EQ(Chosen(Of(MountMode::kWrite), StoreKind::kSsh, kFull), "sshfs");
}

TEST(ChooseMounter, TakesWhatThereIs) {
  const NodeTools few = {true, true, {"rclone", "goofys"}};
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kS3, few), "rclone goofys");
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kAzure, few), "rclone");
  const NodeTools goofys = {true, true, {"goofys"}};
  EXPECT_EQ(Chosen(Of(MountMode::kWrite), StoreKind::kS3, goofys), "goofys");
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "", 1 << 30), StoreKind::kS3, goofys),
            "none of mount-s3, rclone is on the node");
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kSsh, few), "'sshfs' is not on the node");
}

TEST(ChooseMounter, TakesTheOneThatIsAskedForOrNone) {
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "goofys"), StoreKind::kS3, kFull), "goofys");
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "goofys", 1 << 30), StoreKind::kS3, kFull),
            "mounter 'goofys' has no cache that can be limited");
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "blobfuse2"), StoreKind::kS3, kFull),
            "mounter 'blobfuse2' cannot mount 's3://bucket'");
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "mount-s3"), StoreKind::kS3, {true, true, {"rclone"}}),
            "'mount-s3' is not on the node");
  MountSpec own_certificates = Of(MountMode::kRead);
  own_certificates.access["ca_file"] = "/ca.pem";
  EXPECT_EQ(Chosen(own_certificates, StoreKind::kS3, kFull), "rclone");
}

TEST(ChooseMounter, OptionsAreGivenToOneOnly) {
  MountSpec mount = Of(MountMode::kRead);
  mount.options = {"--debug"};
  EXPECT_EQ(Chosen(mount, StoreKind::kS3, kFull), "mount-s3");
}

TEST(ChooseMounter, SaysWhatANodeLacks) {
  const auto no_fuse = ChooseMounters(Of(MountMode::kRead), StoreKind::kS3, {false, true, {"rclone"}});
  ASSERT_FALSE(no_fuse);
  EXPECT_EQ(no_fuse.error().message, "the node has no /dev/fuse that can be opened");
  EXPECT_NE(no_fuse.error().hint.find("mode: copy"), std::string::npos);
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kS3, {true, false, {"rclone"}}),
            "the node has no fusermount3");
}

}  // namespace
}  // namespace overcap
