// SPDX-License-Identifier: Apache-2.0
#include "daemon/foreign_folders.h"

#include <gtest/gtest.h>

#include "sys/fake_files.h"

namespace overcap {
namespace {

TEST(ForeignFolders, JobsOfOtherClustersAreNotTheEngines) {
  FakeFiles files;
  for (const std::string path : {"/r/jobs/own", "/r/jobs/own2", "/r/jobs/new", "/r/jobs/sent",
                                 "/r/jobs/ended", "/r/jobs/prepared", "/r/clusters/sky/open"})
    ASSERT_TRUE(files.MakeFolders(path));
  for (const std::string path :
       {"/r/jobs/own/spec.json", "/r/jobs/sent/handle.json", "/r/jobs/ended/ended.json",
        "/r/jobs/prepared/script.sh", "/r/clusters/sky/open/new"})
    ASSERT_TRUE(files.WriteAtomic(path, "", false));
  EXPECT_EQ(ForeignFolders(files, "/r").OwnIds(), (std::vector<std::string>{"own", "own2"}));
  EXPECT_TRUE(ForeignFolders(files, "/r").Has("new"));
  EXPECT_TRUE(ForeignFolders(files, "/nowhere").OwnIds().empty());
}

}  // namespace
}  // namespace overcap
