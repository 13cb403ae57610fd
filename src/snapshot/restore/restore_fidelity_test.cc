// SPDX-License-Identifier: Apache-2.0
// What a file system can hold comes back exactly.
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/restore/testing/restore_rig.h"
#include "sys/fd.h"

namespace overcap {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

bool ProgramIsThere(const std::string& name) {
  for (const std::string& folder : Split(getenv("PATH") == nullptr ? "" : getenv("PATH"), ':')) {
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

class RestoreFidelityTest : public testing::Test {
 protected:
  void SaveAndRestore() {
    const Digest tree = rig_.Save();
    rig_.Restored(rig_.Request(tree));
    EXPECT_EQ(rig_.Differences(), Lines{});
    const RestoreReport again = rig_.Restored(rig_.Request(tree));
    EXPECT_EQ(again.written_files, 0);
  }
  static void Chmod(const std::string& path, unsigned mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
  }

  RestoreRig rig_;
};

TEST_F(RestoreFidelityTest, EveryModeOfFilesAndFolders) {
  for (unsigned mode = 0; mode < 010000; mode += 0111) {
    const std::string name = StrCat("f", mode);
    PutFile(rig_.Source(name), name);
    Chmod(rig_.Source(name), mode);
  }
  for (const unsigned mode : {0U, 0111U, 0444U, 0500U, 0555U, 0700U, 01777U, 02755U, 04711U, 07777U}) {
    const std::string name = StrCat("d", mode);
    PutFile(rig_.Source(name + "/in/it"), name);
    Chmod(rig_.Source(name + "/in"), 0555);
    Chmod(rig_.Source(name), mode);
  }
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can read files without a right to";
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, TimesToTheNanosecondFarBackAndAhead) {
  const int64_t seconds[] = {-1'000'000'000, -1, 0, 1, 1'700'000'000, 4'000'000'000};
  for (const int64_t second : seconds) {
    for (const int64_t ns : {0, 1, 999'999'999}) {
      const std::string name = StrCat("t", second, "_", ns);
      PutFile(rig_.Source("files/" + name), name);
      fs::create_directories(rig_.Source("folders/" + name));
      fs::create_directories(rig_.Source("links"));
      fs::create_symlink("nowhere", rig_.Source("links/" + name));
      for (const char* kind : {"files/", "folders/", "links/"}) {
        SetModeAndTime(rig_.Source(kind + name), 0755, second, ns);
      }
    }
  }
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, NamesOfAnyBytes) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte != '/') all += static_cast<char>(byte);
  }
  PutFile(rig_.Source(all.substr(0, 127)), "1");
  PutFile(rig_.Source(all.substr(127)), "2");
  for (const char* name : {" ", "-rf", "a\nb", "...", "\xff\xfe", "..\x01", "tmp~", "%s"}) {
    PutFile(rig_.Source(name), name);
    fs::create_symlink(name, rig_.Source(StrCat(std::string_view(name), " link")));
  }
  PutFile(rig_.Source(std::string(255, 'n') + "/" + std::string(255, 'm')), "long");
  for (const char* name : {"a", "a b", "a.b", "a-b", "ab", "a/c", "a!c"}) {
    if (std::string_view(name) != "a") PutFile(rig_.Source("order/" + std::string(name)), name);
  }
  fs::create_symlink(std::string(4000, 't'), rig_.Source("long target"));
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, PathsPastTheLimitOfThePath) {
  Fd at(open(rig_.Source().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  Fd top(open(rig_.Source().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 150; ++depth) {
    const std::string name(100, static_cast<char>('a' + depth % 26));
    ASSERT_EQ(mkdirat(at.Get(), name.c_str(), 0755), 0);
    at = Fd(openat(at.Get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  const Fd file(openat(at.Get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(write(file.Get(), "down here", 9), 9);
  ASSERT_EQ(symlinkat("file", at.Get(), "link"), 0);
  ASSERT_EQ(linkat(at.Get(), "file", top.Get(), "up here", 0), 0);
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, SparseFiles) {
  const auto hole_at = [&](const std::string& name, int64_t size, const std::vector<int64_t>& data) {
    const Fd fd(open(rig_.Source(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(ftruncate(fd.Get(), size), 0);
    for (const int64_t at : data) ASSERT_EQ(pwrite(fd.Get(), "data", 4, at), 4);
  };
  hole_at("only a hole", 10 << 20, {});
  hole_at("begins with one", 10 << 20, {(10 << 20) - 4});
  hole_at("ends with one", 10 << 20, {0});
  hole_at("many", 10 << 20, {1 << 20, 2 << 20, 5 << 20, 9 << 20});
  hole_at("past 4 GiB", (int64_t{5} << 30) + 17, {0, int64_t{4} << 30, (int64_t{5} << 30) + 10});
  SaveAndRestore();
  struct stat status;
  ASSERT_EQ(stat(rig_.Target("past 4 GiB").c_str(), &status), 0);
  EXPECT_LT(status.st_blocks, 1000);
}

TEST_F(RestoreFidelityTest, ExtendedAttributesAndAcls) {
  PutFile(rig_.Source("file"), "x");
  PutFile(rig_.Source("read only"), "x");
  fs::create_directory(rig_.Source("folder"));
  fs::create_symlink("file", rig_.Source("link"));
  if (setxattr(rig_.Source("file").c_str(), "user.one", "1", 1, 0) != 0) {
    GTEST_SKIP() << "NOT TESTED: the file system has no extended attributes";
  }
  const std::string large(3000, 'v');
  ASSERT_EQ(setxattr(rig_.Source("file").c_str(), "user.large", large.data(), large.size(), 0), 0);
  ASSERT_EQ(setxattr(rig_.Source("file").c_str(), "user.empty", "", 0, 0), 0);
  ASSERT_EQ(setxattr(rig_.Source("read only").c_str(), "user.one", "1", 1, 0), 0);
  Chmod(rig_.Source("read only"), 0444);
  ASSERT_EQ(setxattr(rig_.Source("folder").c_str(), "user.folder", "\0\1", 2, 0), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(lsetxattr(rig_.Source("link").c_str(), "trusted.link", "l", 1, 0), 0);
    const unsigned char capability[] = {1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    (void)setxattr(rig_.Source("file").c_str(), "security.capability", capability, sizeof capability, 0);
  }
  if (ProgramIsThere("setfacl")) {
    RunProgram({"setfacl", "-m", "u:12345:rw,g:54321:x", "file"}, rig_.Source());
    RunProgram({"setfacl", "-m", "u:12345:r", "read only"}, rig_.Source());
    RunProgram({"setfacl", "-d", "-m", "u:12345:rwx", "folder"}, rig_.Source());
    PutFile(rig_.Source("folder/inherits"), "x");
    PutFile(rig_.Source("folder/does not"), "x");
    RunProgram({"setfacl", "-b", "folder/does not"}, rig_.Source());
  }
  SaveAndRestore();
  ASSERT_EQ(setxattr(rig_.Target("file").c_str(), "user.more", "1", 1, 0), 0);
  ASSERT_EQ(removexattr(rig_.Target("folder").c_str(), "user.folder"), 0);
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, WhatATargetHandsDownIsNotKept) {
  if (!ProgramIsThere("setfacl")) GTEST_SKIP() << "NOT TESTED: no setfacl";
  PutFile(rig_.Source("folder/file"), "x");
  PutFile(rig_.Source("folder/deep/large"), NoiseOf(600'000, 3));
  fs::create_directory(rig_.Target());
  RunProgram({"setfacl", "-d", "-m", "u:12345:rwx", "."}, rig_.Target());
  SaveAndRestore();
}

TEST_F(RestoreFidelityTest, OwnersAsRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can give files away";
  PutFile(rig_.Source("folder/file"), "x");
  PutFile(rig_.Source("folder/setuid"), "x");
  fs::create_symlink("file", rig_.Source("folder/link"));
  for (const char* name : {"folder", "folder/file", "folder/setuid", "folder/link"}) {
    ASSERT_EQ(lchown(rig_.Source(name).c_str(), 12345, 54321), 0);
  }
  Chmod(rig_.Source("folder/setuid"), 06755);
  SaveAndRestore();
  RestoreRequest request = rig_.Request(rig_.Save());
  request.target = rig_.temp() / "mine";
  request.owners = false;
  rig_.Restored(request);
  EXPECT_EQ(CompareTrees(rig_.Source(), request.target, {.owners = false}), Lines{});
  struct stat status;
  ASSERT_EQ(stat((request.target + "/folder/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid());
}

TEST(RestoreManyFilesTest, AHundredThousandInOneFolder) {
  RestoreRig rig(true);
  const Fd folder(open(rig.Source().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = StrCat("file ", i);
    const Fd fd(openat(folder.Get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_EQ(write(fd.Get(), name.data(), name.size()), static_cast<ssize_t>(name.size()));
  }
  EXPECT_EQ(rig.Restored(rig.Request(rig.Save())).written_files, 100'000);
  EXPECT_EQ(rig.Differences(), Lines{});
}

TEST_F(RestoreFidelityTest, RsyncFindsNoDifferenceEither) {
  if (!ProgramIsThere("rsync")) GTEST_SKIP() << "NOT TESTED: no rsync";
  PutFile(rig_.Source("a/b/c"), "x", true);
  PutFile(rig_.Source("large"), NoiseOf(2'000'000, 4));
  fs::create_hard_link(rig_.Source("large"), rig_.Source("a/large"));
  fs::create_symlink("../large", rig_.Source("a/link"));
  fs::create_directories(rig_.Source("empty/er"));
  SetModeAndTime(rig_.Source("empty"), 0711, 1'234'567'890, 987'654'321);
  SaveAndRestore();
  EXPECT_EQ(
      RunProgram(
          {"rsync", "-aHAXn", "--checksum", "--delete", "-i", rig_.Source() + "/", rig_.Target() + "/"}, "/"),
      "");
}

}  // namespace
}  // namespace overcap
