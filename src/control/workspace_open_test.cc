// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_open.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/all_stores.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

class WorkspaceOpen : public testing::Test {
 protected:
  WorkspaceOpen() {
    world_.roots = {temp_.Path() + "/root"};
    world_.user = "ann";
    world_.host = "node1";
    world_.clock = &clock_;
    world_.random = &random_;
  }

  Workspace Add(const std::string& name) {
    Workspace workspace;
    workspace.name = name;
    workspace.id = "id-of-" + name;
    workspace.at = StrCat(temp_.Path(), "/scratch/$USER/", name);
    workspace.store = StrCat("mem:", temp_.Path(), name);
    EXPECT_TRUE(WorkspaceBook(world_.roots[0]).Add(workspace));
    workspace.root = world_.roots[0];
    return workspace;
  }
  std::string FolderOf(const std::string& name) { return StrCat(temp_.Path(), "/scratch/ann/", name); }
  void Put(const Workspace& workspace, const std::string& folder) {
    EXPECT_TRUE(PosixFiles().MakeFolders(folder + "/deep"));
    EXPECT_TRUE(WriteWorkspaceCopy(folder, {workspace.name, workspace.id, world_.roots[0], "", "", "", ""}));
  }

  TempFolder temp_;
  FakeClock clock_;
  SeededRandom random_{1};
  WorkspaceWorld world_;
};

TEST_F(WorkspaceOpen, WithoutANameTheOnlyOneIsMeant) {
  EXPECT_EQ(FindWorkspace(world_, "").error().code, ErrorCode::kNotFound);
  Add("a");
  const auto only = FindWorkspace(world_, "");
  ASSERT_TRUE(only);
  EXPECT_EQ(only->workspace.name, "a");
  EXPECT_EQ(only->folder, FolderOf("a"));
  EXPECT_FALSE(only->copy);
  Add("b");
  EXPECT_EQ(FindWorkspace(world_, "").error().code, ErrorCode::kUsage);
}

TEST_F(WorkspaceOpen, InsideAFolderItsWorkspaceIsMeant) {
  Add("a");
  const Workspace b = Add("b");
  const std::string elsewhere = temp_.Path() + "/elsewhere";
  Put(b, elsewhere);
  world_.folder = elsewhere + "/deep";
  const auto found = FindWorkspace(world_, "");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->workspace.name, "b");
  EXPECT_EQ(found->folder, elsewhere);
  EXPECT_EQ(FindWorkspace(world_, "b")->folder, elsewhere);
  EXPECT_EQ(FindWorkspace(world_, "a")->folder, FolderOf("a"));
}

TEST_F(WorkspaceOpen, AFolderOfANamesakeIsAConflict) {
  const Workspace a = Add("a");
  Workspace other = a;
  other.id = "another";
  Put(other, FolderOf("a"));
  EXPECT_EQ(FindWorkspace(world_, "a").error().code, ErrorCode::kConflict);
  world_.folder = FolderOf("a");
  EXPECT_EQ(FindWorkspace(world_, "").error().code, ErrorCode::kConflict);
}

TEST_F(WorkspaceOpen, WhereInitPutItOnThisHostIsRemembered) {
  const Workspace a = Add("a");
  const std::string elsewhere = temp_.Path() + "/elsewhere";
  Put(a, elsewhere);
  WorkspaceBook(world_.roots[0]).NotePlace("a", {"node1", elsewhere, "", 1});
  EXPECT_EQ(FindWorkspace(world_, "a")->folder, elsewhere);
  world_.host = "node2";
  EXPECT_EQ(FindWorkspace(world_, "a")->folder, FolderOf("a"));
  world_.host = "node1";
  ASSERT_TRUE(PosixFiles().RemoveTree(elsewhere));
  EXPECT_EQ(FindWorkspace(world_, "a")->folder, FolderOf("a"));
}

TEST_F(WorkspaceOpen, AFolderThatIsNotHereOrHalfRestoredIsSaidSo) {
  const Workspace a = Add("a");
  const auto missing = FindWorkspaceHere(world_, "a");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().hint, "'overcap workspace init a' brings it here");
  Put(a, FolderOf("a"));
  EXPECT_TRUE(FindWorkspaceHere(world_, "a"));
  ASSERT_TRUE(WriteWorkspaceCopy(FolderOf("a"), {"a", a.id, a.root, "", "", "abc", "def"}));
  EXPECT_EQ(FindWorkspaceHere(world_, "a").error().code, ErrorCode::kConflict);
}

TEST_F(WorkspaceOpen, TheFirstRootThatKnowsANameWins) {
  world_.roots.push_back(temp_.Path() + "/second");
  Workspace b;
  b.name = "b";
  b.id = "x";
  b.at = "/scratch/b";
  b.store = "mem:b";
  ASSERT_TRUE(WorkspaceBook(world_.roots[1]).Add(b));
  EXPECT_EQ(FindWorkspace(world_, "b")->workspace.root, world_.roots[1]);
  EXPECT_EQ(AllWorkspaces(world_, nullptr).size(), 1u);
}

TEST_F(WorkspaceOpen, ARepositoryIsOpenedWithItsKeyFile) {
  Workspace a = Add("a");
  const std::string key = temp_.Path() + "/key";
  ASSERT_TRUE(PosixFiles().WriteAtomic(key, "secret", false));
  auto store = OpenStore(a.store, true);
  ASSERT_TRUE(store);
  ASSERT_TRUE(Repository::Create({.store = std::move(*store)}, "secret", {}, {.n = 16, .r = 1, .p = 1}));
  EXPECT_EQ(OpenRepositoryOf(world_, a).error().code, ErrorCode::kDenied);
  a.secret = WorkspaceSecret::kKeyFile;
  a.key_file = key;
  EXPECT_TRUE(OpenRepositoryOf(world_, a));
  ASSERT_TRUE(PosixFiles().WriteAtomic(key, "wrong", false));
  EXPECT_EQ(OpenRepositoryOf(world_, a).error().code, ErrorCode::kDenied);
  ASSERT_TRUE(PosixFiles().Remove(key));
  const auto gone = OpenRepositoryOf(world_, a);
  EXPECT_EQ(gone.error().code, ErrorCode::kDenied);
  EXPECT_NE(gone.error().message.find(key), std::string::npos);
}

TEST_F(WorkspaceOpen, APassphraseComesFromAFileOrFromAPerson) {
  EXPECT_EQ(GetPassphrase(world_, "p", false).error().code, ErrorCode::kDenied);
  std::vector<std::string> typed = {"one", "two"};
  size_t asked = 0;
  world_.ask_secret = [&](const std::string&) -> Result<std::string> { return typed[asked++ % 2]; };
  EXPECT_EQ(GetPassphrase(world_, "p", false).value(), "one");
  asked = 0;
  EXPECT_EQ(GetPassphrase(world_, "p", true).error().message, "the two passphrases differ");
  const std::string file = temp_.Path() + "/pass";
  ASSERT_TRUE(PosixFiles().WriteAtomic(file, "from file\n", false));
  world_.variables = Variables({"OVERCAP_PASSPHRASE_FILE=" + file});
  EXPECT_EQ(GetPassphrase(world_, "p", true).value(), "from file");
  ASSERT_TRUE(PosixFiles().WriteAtomic(file, "\n", false));
  EXPECT_EQ(GetPassphrase(world_, "p", true).error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace overcap
