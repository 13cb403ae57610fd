// SPDX-License-Identifier: Apache-2.0
#include "control/workspace.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

Workspace Sample(const std::string& name) {
  Workspace workspace;
  workspace.name = name;
  workspace.id = "0123456789abcdef0123456789abcdef";
  workspace.at = "/scratch/$USER/w\xff";
  workspace.env = "venv";
  workspace.setup = {"pip install -e .", "make"};
  workspace.store = "/nfs/repository";
  workspace.secret = WorkspaceSecret::kKeyFile;
  workspace.key_file = "~/key";
  workspace.exclude = {"build/", "*.o"};
  workspace.created_us = 1'794'734'712'000'000;
  workspace.host = "node7";
  workspace.user = "ann";
  return workspace;
}

TEST(Workspace, IsReadBackAsItWasWritten) {
  const Workspace workspace = Sample("work");
  const auto read = WorkspaceFromJson(WorkspaceToJson(workspace), "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, workspace);
}

TEST(Workspace, ANewerFormatIsAConflictAndAnythingElseIsDamage) {
  std::string newer = WorkspaceToJson(Sample("work"));
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":2");
  EXPECT_EQ(WorkspaceFromJson(newer, "f").error().code, ErrorCode::kConflict);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"format":"overcap workspace","version":1})",
        R"({"format":"other","version":1,"id":"a","at":"/a","store":"/s"})",
        R"({"format":"overcap workspace","version":1,"id":"a","at":"/a","store":"/s","secret":"x"})",
        R"({"format":"overcap workspace","version":"1","id":"a","at":"/a","store":"/s"})"}) {
    const auto read = WorkspaceFromJson(text, "f");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << text;
  }
}

TEST(Workspace, ANameIsTakenOnce) {
  const TempFolder temp;
  WorkspaceBook book(temp.Path());
  ASSERT_TRUE(book.Add(Sample("work")));
  const auto again = book.Add(Sample("work"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ(book.Names(), std::vector<std::string>{"work"});
  const auto found = book.Find("work");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->root, temp.Path());
}

TEST(Workspace, OneThatIsNotThereIsNotFoundWithTheNearestName) {
  const TempFolder temp;
  WorkspaceBook book(temp.Path());
  EXPECT_EQ(book.Find("work").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(book.Add(Sample("training")));
  EXPECT_EQ(book.Find("trainign").error().hint, "did you mean 'training'?");
  EXPECT_EQ(book.Find("../x").error().code, ErrorCode::kUsage);
}

TEST(Workspace, AFileUnderAnotherNameIsDamage) {
  const TempFolder temp;
  WorkspaceBook book(temp.Path());
  PosixFiles files;
  ASSERT_TRUE(files.MakeFolders(book.FolderOf("other")));
  ASSERT_TRUE(
      files.WriteAtomic(book.FolderOf("other") + "/workspace.json", WorkspaceToJson(Sample("work")), false));
  EXPECT_EQ(book.Find("other").error().code, ErrorCode::kCorrupt);
}

TEST(Workspace, PlacesAreToldNewestFirst) {
  const TempFolder temp;
  WorkspaceBook book(temp.Path());
  ASSERT_TRUE(book.Add(Sample("work")));
  const WorkspacePlace old{"node 1/x", "/scratch/a", "aa", 5}, young{"node2", "/scratch/b", "bb", 9};
  book.NotePlace("work", old);
  book.NotePlace("work", young);
  EXPECT_EQ(book.Places("work"), (std::vector<WorkspacePlace>{young, old}));
  EXPECT_EQ(book.FindPlace("work", "node 1/x"), old);
  EXPECT_EQ(book.FindPlace("work", "node3"), std::nullopt);
}

}  // namespace
}  // namespace overcap
