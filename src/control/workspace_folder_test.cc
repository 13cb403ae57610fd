// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_folder.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(WorkspaceFolder, KnowsWhichWorkspaceItIs) {
  const TempFolder temp;
  const std::string folder = temp.Path() + "/w";
  ASSERT_TRUE(PosixFiles().MakeFolders(folder + "/a/b"));
  EXPECT_EQ(ReadWorkspaceCopy(folder).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(WorkspaceAbove(folder + "/a/b"), "");
  const WorkspaceCopy copy{"work", "id", "/root\xfe", "b", "bt", "r", "rt"};
  ASSERT_TRUE(WriteWorkspaceCopy(folder, copy));
  EXPECT_EQ(ReadWorkspaceCopy(folder).value(), copy);
  EXPECT_EQ(WorkspaceAbove(folder + "/a/b"), folder);
  EXPECT_EQ(WorkspaceAbove(folder), folder);
}

TEST(WorkspaceFolder, ANewerFormatIsAConflict) {
  std::string newer = WorkspaceCopyToJson({"work", "id", "/root", "", "", "", ""});
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_EQ(WorkspaceCopyFromJson(newer, "f").error().code, ErrorCode::kConflict);
  EXPECT_EQ(WorkspaceCopyFromJson("{}", "f").error().code, ErrorCode::kCorrupt);
}

TEST(WorkspaceFolder, WhoComesSecondIsToldWhoHasTheLock) {
  const TempFolder temp;
  FakeClock clock;
  EXPECT_EQ(WorkspaceLockHolder(temp.Path()), std::nullopt);
  {
    const auto lock = LockWorkspace(temp.Path(), "overcap workspace backup", clock);
    ASSERT_TRUE(lock);
    const auto second = LockWorkspace(temp.Path(), "overcap workspace init", clock);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    EXPECT_NE(second.error().message.find(StrCat("pid ", getpid(), " on ")), std::string::npos);
    EXPECT_NE(second.error().message.find("overcap workspace backup, since 2023-11-14T22:13:20Z"),
              std::string::npos)
        << second.error().message;
    ASSERT_TRUE(WorkspaceLockHolder(temp.Path()));
    EXPECT_NE(WorkspaceLockHolder(temp.Path())->find("overcap workspace backup"), std::string::npos);
  }
  EXPECT_EQ(WorkspaceLockHolder(temp.Path()), std::nullopt);
  EXPECT_TRUE(LockWorkspace(temp.Path(), "x", clock));
}

TEST(WorkspaceFolder, ActivateSetsUpAShellWhateverTheFolderIsCalled) {
  const TempFolder temp;
  const std::string folder = temp.Path() + "/a b'c\n$(touch x)";
  ASSERT_TRUE(PosixFiles().MakeFolders(folder));
  Workspace workspace;
  workspace.name = "work";
  workspace.env = "conda";
  ASSERT_TRUE(WriteActivate(workspace, folder));
  SpawnRequest request;
  request.argv = {
      "/bin/sh",
      "-eu",
      "-c",
      ". \"$1\"; printf '%s|%s|%s|%s' \"$OVERCAP_WORKSPACE\" \"$CCACHE_DIR\" \"$CONDA_PREFIX\" \"$PATH\"",
      "sh",
      folder + "/.overcap/activate"};
  request.env = {"PATH=/usr/bin"};
  const auto run = CaptureOutput(request, std::chrono::seconds(20));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->output,
            StrCat("work|", folder, "/.overcap/ccache|", folder, "/.conda|", folder, "/.conda/bin:/usr/bin"));
}

}  // namespace
}  // namespace overcap
