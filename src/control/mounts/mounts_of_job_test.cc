// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounts_of_job.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Words = std::vector<std::string>;

MountEntry Entry(std::string store, std::string where = "overcap.yaml:3") {
  MountEntry entry;
  entry.store = std::move(store);
  entry.where = std::move(where);
  return entry;
}

class MountsOfAJob : public testing::Test {
 protected:
  MountsOfAJob() {
    book_.folder = "/home/me/project";
    book_.entries["lab"] = {.at = "s3://lab-data/qd", .endpoint = "http://ceph:7480", .path_style = true};
  }
  Result<JobMounts> Of(const Words& flags) { return MountsOfJob({all_, cluster_, flags}, book_); }
  std::string Wrong(const Words& flags) {
    const auto mounts = Of(flags);
    return mounts ? "" : mounts.error().message;
  }

  MountEntries all_, cluster_;
  StoreBook book_;
};

TEST_F(MountsOfAJob, FlagsHideTheClustersAndTheseThoseOfAll) {
  all_ = {
      {"a", Entry("s3://one-bucket")}, {"b", Entry("s3://two-bucket")}, {"c", Entry("s3://three-bucket")}};
  cluster_ = {{"b", Entry("/nfs/b")}};
  const auto job = Of({"c=none", "d=lab:train,mode=rw"});
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_EQ(job->mounts.size(), 3u);
  EXPECT_EQ(job->mounts[0].store, "s3://one-bucket");
  EXPECT_EQ(job->mounts[1].store, "/nfs/b");
  EXPECT_EQ(job->mounts[2].store, "s3://lab-data/qd/train");
  EXPECT_EQ(job->mounts[2].access,
            (std::map<std::string, std::string>{{"endpoint", "http://ceph:7480"}, {"path_style", "true"}}));
}

TEST_F(MountsOfAJob, ANameAloneIsThatStoreAndAPathIsThatOfWhoSubmits) {
  const auto job = Of({"lab", "here=./data"});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->mounts[0].store, "/home/me/project/data");
  EXPECT_EQ(job->mounts[1].store, "s3://lab-data/qd");
  EXPECT_TRUE(job->notes.empty());
}

TEST_F(MountsOfAJob, ReadOnlyOfALinkIsToldWhenItWasAskedFor) {
  const auto job = Of({"data=/nfs/data,mode=ro"});
  ASSERT_TRUE(job);
  EXPECT_EQ(
      job->notes,
      (Words{"mount 'data' is a link to '/nfs/data': the job can write there as far as the folder lets it"}));
}

TEST_F(MountsOfAJob, WhatIsWrongIsSaidWithItsPlace) {
  all_ = {{"x", Entry("gs://bucket")}};
  EXPECT_EQ(Wrong({}).find("overcap.yaml:3: mount 'x': "), 0u) << Wrong({});
  all_ = {{"x", Entry("nobody:here")}};
  EXPECT_EQ(Wrong({}), "overcap.yaml:3: mount 'x': there is no store 'nobody' in 'stores:' of overcap.yaml");
  all_.clear();
  EXPECT_EQ(Wrong({"x=mem:y"}), "--mount: mount 'x': 'mem:y' is memory, which no node can mount");
  EXPECT_EQ(
      Wrong({"x=/nfs/x,cache=1G"}).find("--mount: mount 'x': 'mounter', 'options' and 'cache' mean nothing"),
      0u);
  EXPECT_EQ(Wrong({"x=/a,at=d", "y=/b,at=d/e"}),
            "--mount: mount 'y': 'd/e' is in the way of mount 'x' at 'd'");
  EXPECT_EQ(Wrong({"x=s3://lab-data,mounter=blobfuse2"}),
            "--mount: mount 'x': mounter 'blobfuse2' cannot mount 's3://lab-data'");
  EXPECT_EQ(Wrong({"x=s3://lab-data,mounter=goofys,cache=1G,option=MOUNTPOINT"}),
            "--mount: mount 'x': 'cache' means nothing to mounter 'goofys'");
}

}  // namespace
}  // namespace overcap
