// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_contents.h"

#include <gtest/gtest.h>

#include "control/workspace_changes.h"
#include "control/workspace_restore.h"

namespace overcap {
namespace {

TEST(WorkspaceContents, TypedPathsAreRelativeToWhereTheUserIs) {
  const std::string folder = "/scratch/w";
  const auto path = [&](const char* typed, const char* current) {
    return PathInWorkspace(typed, folder, current).value_or("refused");
  };
  EXPECT_EQ(path("a.txt", "/home/ann"), "a.txt");
  EXPECT_EQ(path("a.txt", "/scratch/w"), "a.txt");
  EXPECT_EQ(path("a.txt", "/scratch/w/sub"), "sub/a.txt");
  EXPECT_EQ(path("../a//b/", "/scratch/w/sub"), "a/b");
  EXPECT_EQ(path(".", "/scratch/w"), "");
  EXPECT_EQ(path("/scratch/w/x", "/home/ann"), "x");
  EXPECT_EQ(path("/scratch/wx", "/home/ann"), "refused");
  EXPECT_EQ(path("../..", "/scratch/w/sub"), "refused");
  EXPECT_EQ(path("a.txt", "/scratch/wx"), "a.txt");
}

TEST(WorkspaceContents, APathIsWantedWhenItIsNamedOrBelow) {
  EXPECT_TRUE(IsWanted("a", {}));
  EXPECT_TRUE(IsWanted("a/b", {"a"}));
  EXPECT_TRUE(IsWanted("a", {"x", "a"}));
  EXPECT_FALSE(IsWanted("ab", {"a"}));
}

TEST(WorkspaceContents, OnlyWhatDiffersFromBothIsALocalChange) {
  const std::vector<FolderDifference> base = {{"a", '~'}, {"b", '~'}, {"c", '+'}};
  const std::vector<FolderDifference> target = {{"b", '~'}, {"c", '~'}, {"d", '-'}};
  const auto both = InBoth(base, target);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].path, "b");
  EXPECT_EQ(both[1].path, "c");
  EXPECT_EQ(both[1].what, '~');
  EXPECT_EQ(SomeOf({{"a", '+'}, {"b", '+'}, {"c", '+'}, {"d", '+'}}), "'a', 'b', 'c' and 1 more");
}

}  // namespace
}  // namespace overcap
