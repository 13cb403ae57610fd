// SPDX-License-Identifier: Apache-2.0
// What every implementation of Files must do; the tests cannot tell which one they run on.
#include "sys/files.h"

#include <gtest/gtest.h>

#include "sys/fake_files.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

using Names = std::vector<std::string>;

class FilesTest : public testing::TestWithParam<bool> {
 protected:
  FilesTest() {
    if (GetParam()) {
      files_ = std::make_unique<PosixFiles>();
    } else {
      files_ = std::make_unique<FakeFiles>();
    }
    EXPECT_TRUE(files_->MakeFolders(root_.Path()));
  }

  std::string Path(const std::string& name) const { return root_ / name; }
  std::string Content(const std::string& name) const { return files_->Read(Path(name)).value_or("<none>"); }
  std::unique_ptr<AppendFile> Append(const std::string& name, std::string_view data) {
    auto file = files_->OpenAppend(Path(name));
    EXPECT_TRUE(file && (*file)->Append(data));
    return std::move(*file);
  }
  void Write(const std::string& name, std::string_view data) {
    EXPECT_TRUE(files_->WriteAtomic(Path(name), data, false));
  }

  TempFolder root_;
  std::unique_ptr<Files> files_;
};

TEST_P(FilesTest, AppendedBytesAreReadBackAlsoAfterReopening) {
  Append("a", "one\n");
  auto file = Append("a", std::string("two\0\n", 5));
  EXPECT_TRUE(file->Sync());
  EXPECT_EQ(file->Size(), 9);
  EXPECT_EQ(Content("a"), std::string("one\ntwo\0\n", 9));
}

TEST_P(FilesTest, AppendGoesOnAtTheEndAfterTruncation) {
  auto file = Append("a", "good+torn");
  EXPECT_TRUE(file->TruncateTo(4));
  EXPECT_EQ(file->Size(), 4);
  EXPECT_TRUE(file->Append("!"));
  EXPECT_EQ(Content("a"), "good!");
}

TEST_P(FilesTest, SpaceThatIsSetAsideIsNotSeenInTheFile) {
  auto file = Append("a", "one");
  const auto reserved = file->Reserve(1 << 20);
  ASSERT_TRUE(reserved) << reserved.error().message;
  EXPECT_EQ(Content("a"), "one");
  EXPECT_TRUE(file->Append("+two"));
  EXPECT_EQ(Content("a"), "one+two");
  EXPECT_EQ(file->Size(), 7);
}

TEST_P(FilesTest, ReadRangeGivesFewerBytesAtTheEndAndNoneBeyond) {
  Write("a", "0123456789");
  EXPECT_EQ(files_->ReadRange(Path("a"), 2, 3).value(), "234");
  EXPECT_EQ(files_->ReadRange(Path("a"), 8, 100).value(), "89");
  EXPECT_EQ(files_->ReadRange(Path("a"), 10, 1).value(), "");
  EXPECT_EQ(files_->ReadRange(Path("a"), 99, 1).value(), "");
}

TEST_P(FilesTest, ReadingWhatIsNotThereIsNotFoundAndNamesIt) {
  const auto result = files_->Read(Path("none/x"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_NE(result.error().message.find("'" + Path("none/x") + "'"), std::string::npos);
}

TEST_P(FilesTest, ReadingAFolderFails) {
  EXPECT_FALSE(files_->Read(root_.Path()));
}

TEST_P(FilesTest, WriteAtomicReplacesTheWholeContentAndLeavesNothingElse) {
  Write("a", "long old content");
  EXPECT_TRUE(files_->WriteAtomic(Path("a"), "new", true));
  EXPECT_EQ(Content("a"), "new");
  EXPECT_EQ(files_->List(root_.Path()).value(), Names{"a"});
}

TEST_P(FilesTest, WriteAtomicIntoAMissingFolderIsNotFound) {
  EXPECT_EQ(files_->WriteAtomic(Path("none/a"), "x", false).error().code, ErrorCode::kNotFound);
}

TEST_P(FilesTest, CreateExclusiveHasOneWinner) {
  EXPECT_TRUE(files_->CreateExclusive(Path("claim"), "first"));
  EXPECT_EQ(files_->CreateExclusive(Path("claim"), "second").error().code, ErrorCode::kConflict);
  EXPECT_EQ(Content("claim"), "first");
  EXPECT_EQ(files_->List(root_.Path()).value(), Names{"claim"});
}

TEST_P(FilesTest, MakeFoldersMakesParentsAndMayBeRepeated) {
  EXPECT_TRUE(files_->MakeFolders(Path("x/y/z")));
  EXPECT_TRUE(files_->MakeFolders(Path("x/y/z")));
  EXPECT_TRUE(files_->MakeFolders(Path("x/y/z/")));
  EXPECT_EQ(files_->List(Path("x/y")).value(), Names{"z"});
}

TEST_P(FilesTest, MakeFoldersOverAFileFails) {
  Write("a", "");
  EXPECT_FALSE(files_->MakeFolders(Path("a")));
  EXPECT_FALSE(files_->MakeFolders(Path("a/b")));
}

TEST_P(FilesTest, RenameReplacesTheTarget) {
  Write("a", "new");
  Write("b", "old");
  EXPECT_TRUE(files_->Rename(Path("a"), Path("b")));
  EXPECT_FALSE(files_->Exists(Path("a")));
  EXPECT_EQ(Content("b"), "new");
}

TEST_P(FilesTest, RenameMovesAFolderWithItsContent) {
  EXPECT_TRUE(files_->MakeFolders(Path("x/y")));
  Write("x/y/a", "kept");
  EXPECT_TRUE(files_->Rename(Path("x"), Path("z")));
  EXPECT_EQ(Content("z/y/a"), "kept");
  EXPECT_FALSE(files_->Exists(Path("x")));
}

TEST_P(FilesTest, RenameOfNothingIsNotFound) {
  EXPECT_EQ(files_->Rename(Path("none"), Path("b")).error().code, ErrorCode::kNotFound);
}

TEST_P(FilesTest, RenameOntoAFullFolderFailsAndChangesNothing) {
  EXPECT_TRUE(files_->MakeFolders(Path("x")));
  EXPECT_TRUE(files_->MakeFolders(Path("y")));
  Write("y/a", "kept");
  EXPECT_FALSE(files_->Rename(Path("x"), Path("y")));
  EXPECT_FALSE(files_->Rename(Path("y"), Path("y/b")));
  EXPECT_EQ(Content("y/a"), "kept");
}

TEST_P(FilesTest, RemoveIsFineWhenTheFileIsGoneAndRefusesAFolder) {
  Write("a", "");
  EXPECT_TRUE(files_->Remove(Path("a")));
  EXPECT_TRUE(files_->Remove(Path("a")));
  EXPECT_TRUE(files_->Remove(Path("none/a")));
  EXPECT_FALSE(files_->Exists(Path("a")));
  EXPECT_FALSE(files_->Remove(root_.Path()));
}

TEST_P(FilesTest, AnOpenFileOutlivesItsName) {
  auto file = Append("a", "1");
  EXPECT_TRUE(files_->Remove(Path("a")));
  EXPECT_TRUE(file->Append("2"));
  EXPECT_EQ(file->Size(), 2);
  EXPECT_FALSE(files_->Exists(Path("a")));
}

TEST_P(FilesTest, RemoveTreeRemovesEverythingBelowAndMayBeRepeated) {
  EXPECT_TRUE(files_->MakeFolders(Path("x/y/z")));
  Write("x/a", "");
  Write("x/y/b", "");
  EXPECT_TRUE(files_->RemoveTree(Path("x")));
  EXPECT_TRUE(files_->RemoveTree(Path("x")));
  EXPECT_EQ(files_->List(root_.Path()).value(), Names{});
}

TEST_P(FilesTest, ListIsSortedAndOfAMissingFolderNotFound) {
  for (const char* name : {"b", "a", "C"}) Write(name, "");
  EXPECT_EQ(files_->List(root_.Path()).value(), (Names{"C", "a", "b"}));
  EXPECT_EQ(files_->List(Path("none")).error().code, ErrorCode::kNotFound);
}

TEST_P(FilesTest, SyncFolderNeedsAFolder) {
  EXPECT_TRUE(files_->SyncFolder(root_.Path()));
  EXPECT_FALSE(files_->SyncFolder(Path("none")));
}

TEST_P(FilesTest, OpenAppendInAMissingFolderIsNotFound) {
  EXPECT_EQ(files_->OpenAppend(Path("none/a")).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(files_->OpenAppend(root_.Path()));
}

INSTANTIATE_TEST_SUITE_P(Each, FilesTest, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Posix" : "Fake"; });

}  // namespace
}  // namespace overcap
