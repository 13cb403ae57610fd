// SPDX-License-Identifier: Apache-2.0
#include "control/sshd_session.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "control/ssh_keys.h"

namespace overcap {
namespace {

SshdRequest Usual() {
  return {.sshd = "/usr/sbin/sshd",
          .host_key = "/h/100%/host_key",
          .authorized = {"/h/100%/authorized_keys", "/home/my own/.ssh/authorized_keys"},
          .user = "ann",
          .forced = {"/opt/overcap", "enter", "--folder", "/a b"},
          .sftp_server = ""};
}

bool Has(const std::vector<std::string>& argv, const std::string& option) {
  return std::find(argv.begin(), argv.end(), option) != argv.end();
}

TEST(SshdSession, TakesOneUserWithKeysAndForcesTheCommand) {
  const auto argv = SshdCommand(Usual());
  ASSERT_TRUE(argv) << argv.error().message;
  EXPECT_TRUE(Has(*argv, "HostKey=/h/100%/host_key"));
  EXPECT_TRUE(
      Has(*argv, "AuthorizedKeysFile=/h/100%%/authorized_keys \"/home/my own/.ssh/authorized_keys\""));
  EXPECT_TRUE(Has(*argv, "AllowUsers=ann"));
  EXPECT_TRUE(Has(*argv, "ForceCommand=/opt/overcap enter --folder '/a b'"));
  EXPECT_TRUE(Has(*argv, "PasswordAuthentication=no"));
  EXPECT_FALSE(
      std::any_of(argv->begin(), argv->end(), [](auto& word) { return word.starts_with("Subsystem"); }));
  SshdRequest with = Usual();
  with.sftp_server = "/x/sftp-server";
  EXPECT_TRUE(Has(*SshdCommand(with), "Subsystem=sftp /x/sftp-server"));
}

TEST(SshdSession, APathThatWouldBreakTheOptionIsRefused) {
  SshdRequest bad = Usual();
  bad.host_key = "/a\nPermitRootLogin yes";
  EXPECT_EQ(SshdCommand(bad).error().code, ErrorCode::kUsage);
}

TEST(SshKeys, TheFilesNameTheKeysAndNobodyElse) {
  EXPECT_EQ(AuthorizedKeysText("ssh-ed25519 AAAA me@there\n"), "ssh-ed25519 AAAA overcap\n");
  EXPECT_EQ(KnownHostsText("ssh-ed25519 BBBB overcap\n"), "overcap-* ssh-ed25519 BBBB\n");
}

}  // namespace
}  // namespace overcap
