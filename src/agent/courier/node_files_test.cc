// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/node_files.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(NodeFiles, LogsOfAllEpochsAndTheEventsGrowAndOnlyTheNewestEpochStillDoes) {
  const TempFolder folder;
  PosixFiles files;
  const auto put = [&](const std::string& name) {
    const std::string path = StrCat(folder.Path(), "/attempt-3/node-1/", name);
    ASSERT_TRUE(files.MakeFolders(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(files.CreateExclusive(path, "x"));
  };
  for (const char* name : {"events.jsonl", "launch.json", "attempt-2/rank-0.log", "attempt-2/error-0.json",
                           "attempt-10/rank-4.log", "attempt-10/stacks.txt", "attempt-x/rank-9.log"})
    put(name);
  std::vector<std::string> found;
  for (const NodeFile& file : NodeFilesIn(folder.Path(), "attempt-3/node-1"))
    found.push_back(StrCat(file.name, file.ended ? " ended" : ""));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{
                       "attempt-3/node-1/attempt-10/rank-4.log", "attempt-3/node-1/attempt-10/stacks.txt",
                       "attempt-3/node-1/attempt-2/rank-0.log ended", "attempt-3/node-1/events.jsonl"}));
  EXPECT_TRUE(NodeFilesIn(folder.Path(), "attempt-3/node-2").empty());
}

}  // namespace
}  // namespace overcap
