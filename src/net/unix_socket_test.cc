// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

// A byte goes from a client to the accepted connection.
void ExpectTalks(const Fd& listener, const std::string& path) {
  auto client = ConnectUnix(path, milliseconds(1000));
  ASSERT_TRUE(client) << client.error().message;
  auto server = AcceptUnix(listener);
  ASSERT_TRUE(server && server->has_value());
  ASSERT_EQ(write(client->Get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read((**server).Get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(PeerUid(**server).value(), geteuid());
}

TEST(UnixSocketTest, ClientAndServerTalkAndKnowEachOthersUser) {
  TempFolder root;
  const Fd listener = ListenUnix(root / "s").value();
  ExpectTalks(listener, root / "s");
}

TEST(UnixSocketTest, APathMayBeLongerThanTheKernelsAddress) {
  TempFolder root;
  const std::string folder = root / std::string(150, 'd') + "/" + std::string(150, 'e');
  ASSERT_TRUE(PosixFiles().MakeFolders(folder));
  const Fd listener = ListenUnix(folder + "/daemon.sock").value();
  ExpectTalks(listener, folder + "/daemon.sock");
}

TEST(UnixSocketTest, FolderAndSocketArePrivateWhateverTheUmask) {
  TempFolder root;
  ASSERT_EQ(mkdir((root / "open").c_str(), 0777), 0);
  ASSERT_EQ(chmod((root / "open").c_str(), 0777), 0);
  const mode_t old = umask(0);
  const auto listener = ListenUnix(root / "open/s");
  const auto made = ListenUnix(root / "made/s");
  umask(old);
  ASSERT_TRUE(listener && made);
  EXPECT_EQ(ModeOf(root / "open"), 0700u);
  EXPECT_EQ(ModeOf(root / "open/s"), 0600u);
  EXPECT_EQ(ModeOf(root / "made"), 0700u);
}

TEST(UnixSocketTest, AStaleSocketIsReplacedAndALivingOneIsNot) {
  TempFolder root;
  { const Fd first = ListenUnix(root / "s").value(); }
  EXPECT_EQ(ConnectUnix(root / "s", milliseconds(100)).error().code, ErrorCode::kUnavailable);
  const Fd second = ListenUnix(root / "s").value();
  EXPECT_EQ(ListenUnix(root / "s").error().code, ErrorCode::kConflict);
}

TEST(UnixSocketTest, AFileThatIsNoSocketIsKept) {
  TempFolder root;
  ASSERT_TRUE(PosixFiles().WriteAtomic(root / "s", "precious", false));
  EXPECT_EQ(ListenUnix(root / "s").error().code, ErrorCode::kConflict);
  EXPECT_EQ(PosixFiles().Read(root / "s").value(), "precious");
}

TEST(UnixSocketTest, ConnectingToNothingIsNotFound) {
  TempFolder root;
  EXPECT_EQ(ConnectUnix(root / "none", milliseconds(100)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ConnectUnix(root / "none/none", milliseconds(100)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ConnectUnix("relative", milliseconds(100)).error().code, ErrorCode::kUsage);
}

TEST(UnixSocketTest, AcceptGivesNothingWhenNobodyWaits) {
  TempFolder root;
  const Fd listener = ListenUnix(root / "s").value();
  const auto none = AcceptUnix(listener);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

}  // namespace
}  // namespace overcap
