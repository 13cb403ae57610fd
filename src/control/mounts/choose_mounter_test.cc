// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/choose_mounter.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

const NodeTools kFull = {true, true, {"blobfuse2", "rclone", "sshfs"}};

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

MountSpec Raw(std::vector<std::string> options) {
  MountSpec mount = Of(MountMode::kRead, "sshfs");
  mount.store = "ssh://host/x";
  mount.options = std::move(options);
  return mount;
}

TEST(ChooseMounter, TakesTheOneThatServesTheStoreBest) {
  for (const MountMode mode : {MountMode::kRead, MountMode::kWrite}) {
    EXPECT_EQ(Chosen(Of(mode), StoreKind::kS3, kFull), "rclone");
    EXPECT_EQ(Chosen(Of(mode), StoreKind::kAzure, kFull), "blobfuse2 rclone");
    EXPECT_EQ(Chosen(Of(mode), StoreKind::kSsh, kFull), "'s3://bucket' can be mounted by a raw mounter only");
  }
}

TEST(ChooseMounter, TakesWhatThereIs) {
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kAzure, {true, true, {"rclone"}}), "rclone");
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kS3, {true, true, {"blobfuse2"}}),
            "'rclone' is not on the node");
  EXPECT_EQ(Chosen(Of(MountMode::kRead), StoreKind::kAzure, {true, true, {}}),
            "none of blobfuse2, rclone is on the node");
}

TEST(ChooseMounter, TakesTheOneThatIsAskedForOrNone) {
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "rclone"), StoreKind::kAzure, kFull), "rclone");
  EXPECT_EQ(Chosen(Of(MountMode::kRead, "blobfuse2"), StoreKind::kS3, kFull),
            "mounter 'blobfuse2' cannot mount 's3://bucket'");
  MountSpec own_certificates = Of(MountMode::kRead);
  own_certificates.access["ca_file"] = "/ca.pem";
  EXPECT_EQ(Chosen(own_certificates, StoreKind::kAzure, kFull), "rclone");
  own_certificates.mounter = "blobfuse2";
  EXPECT_EQ(Chosen(own_certificates, StoreKind::kAzure, kFull), "mounter 'blobfuse2' takes no 'ca_file'");
}

TEST(ChooseMounter, ARawMounterNeedsAllItsWords) {
  EXPECT_EQ(Chosen(Raw({"-f", "host:/x", "MOUNTPOINT"}), StoreKind::kSsh, kFull), "sshfs");
  EXPECT_EQ(Chosen(Raw({"-f", "host:/x", "MOUNTPOINT"}), StoreKind::kSsh, {true, true, {"rclone"}}),
            "'sshfs' is not on the node");
  const std::vector<std::string> too_few[] = {{}, {"-o", "compression=yes"}};
  for (const auto& words : too_few)
    EXPECT_EQ(Chosen(Raw(words), StoreKind::kSsh, kFull),
              "mounter 'sshfs' is neither blobfuse2 nor rclone: 'options' must be all its words, with "
              "MOUNTPOINT for the folder");
  const auto wordless = CheckMounter(Raw({}), StoreKind::kSsh);
  ASSERT_FALSE(wordless);
  EXPECT_NE(wordless.error().hint.find("[-f, -o, ro, host:/path, MOUNTPOINT]"), std::string::npos);
  MountSpec with_cache = Raw({"MOUNTPOINT"});
  with_cache.cache_bytes = 1 << 30;
  EXPECT_EQ(Chosen(with_cache, StoreKind::kSsh, kFull), "'cache' means nothing to mounter 'sshfs'");
  MountSpec copy = Of(MountMode::kCopy);
  EXPECT_TRUE(CheckMounter(copy, StoreKind::kSsh));
}

TEST(ChooseMounter, OptionsAreGivenToOneOnly) {
  MountSpec mount = Of(MountMode::kRead);
  mount.options = {"--debug"};
  EXPECT_EQ(Chosen(mount, StoreKind::kAzure, kFull), "blobfuse2");
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
