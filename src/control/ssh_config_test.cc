// SPDX-License-Identifier: Apache-2.0
#include "control/ssh_config.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace overcap {
namespace {

constexpr std::string_view kInclude = "~/.ssh/overcap/config";

SshHost Dev() {
  SshHost host;
  host.name = "dev";
  host.job = "ann_1_00000001";
  host.attempt = 2;
  host.node = "n2";
  host.user = "ann";
  host.proxy = {"/opt/my tools/overcap", "alloc", "connect", "/h/100%/dev.json"};
  host.key = "/h/my state/id";
  host.known_hosts = "/h/100%/known_hosts";
  return host;
}

TEST(SshConfig, AnEntryLeadsThroughTheProxyWithKeysOfItsOwn) {
  const auto entry = SshHostEntry(Dev());
  ASSERT_TRUE(entry);
  EXPECT_EQ(*entry,
            "# overcap-dev begin: job ann_1_00000001, attempt 2, node n2; kept by overcap, goes with the "
            "allocation\n"
            "Host overcap-dev\n"
            "  HostName n2\n"
            "  User ann\n"
            "  ProxyCommand '/opt/my tools/overcap' alloc connect /h/100%%/dev.json\n"
            "  IdentityFile \"/h/my state/id\"\n"
            "  IdentitiesOnly yes\n"
            "  UserKnownHostsFile /h/100%%/known_hosts\n"
            "  GlobalKnownHostsFile /dev/null\n"
            "  HostKeyAlias overcap-dev\n"
            "  StrictHostKeyChecking yes\n"
            "  CheckHostIP no\n"
            "  PreferredAuthentications publickey\n"
            "  ServerAliveInterval 30\n"
            "# overcap-dev end\n");
}

TEST(SshConfig, AnEntryWithAJumpLeavesKeysToTheUser) {
  SshHost host = Dev();
  host.proxy.clear();
  host.jump = "login1";
  const auto entry = SshHostEntry(host);
  ASSERT_TRUE(entry);
  EXPECT_NE(entry->find("  ProxyJump login1\n"), std::string::npos);
  EXPECT_EQ(entry->find("IdentityFile"), std::string::npos);
}

TEST(SshConfig, APathThatSshCannotReadIsRefused) {
  for (const std::string bad : {"/a\"b", "/a\nb", "/a${HOME}", "/a\\b"}) {
    SshHost host = Dev();
    host.key = bad;
    EXPECT_EQ(SshHostEntry(host).error().code, ErrorCode::kUsage) << bad;
  }
  SshHost host = Dev();
  host.proxy.push_back("a\nHost *");
  EXPECT_EQ(SshHostEntry(host).error().code, ErrorCode::kUsage);
}

TEST(SshConfig, AnEntryIsReplacedInItsPlaceAndRemovedWithoutATrace) {
  const std::string foreign = "Host a\n  User b\n", more = "# mine\r\nHost c\r\n";
  const std::string entry = *SshHostEntry(Dev());
  const std::string text = foreign + entry + more;
  EXPECT_EQ(SshEntries(text), (std::vector<SshEntry>{{"dev", "ann_1_00000001", 2, "n2"}}));
  SshHost moved = Dev();
  moved.node = "n3", moved.attempt = 3;
  const std::string other = *SshHostEntry(moved);
  EXPECT_EQ(WithSshEntry(text, "dev", other), foreign + other + more);
  EXPECT_EQ(WithoutSshEntry(text, "dev"), foreign + more);
  EXPECT_EQ(WithoutSshEntry(text, "de"), text);
  EXPECT_EQ(WithSshEntry("Host a", "dev", entry), "Host a\n" + entry);
  EXPECT_EQ(WithSshEntry(entry + entry, "dev", other), other);
}

TEST(SshConfig, AnEntryWithoutItsEndTakesNothingForeignAlong) {
  std::string entry = *SshHostEntry(Dev());
  entry.resize(entry.size() - std::string("# overcap-dev end\n").size());
  SshHost other = Dev();
  other.name = "big";
  const std::string big = *SshHostEntry(other), foreign = "Host x\n\tUser y\n";
  EXPECT_EQ(WithoutSshEntry(entry + foreign + big, "dev"), foreign + big);
}

TEST(SshConfig, TheIncludeGoesToTheTopOnce) {
  const std::string text = "Host a\n  Include ~/.ssh/overcap/config\n";
  const std::string with = WithSshInclude(text, kInclude);
  EXPECT_TRUE(with.ends_with("\n\n" + text)) << with;
  EXPECT_TRUE(HasSshInclude(with, kInclude));
  EXPECT_EQ(WithSshInclude(with, kInclude), with);
  EXPECT_TRUE(HasSshInclude("include=\"~/.ssh/overcap/config\" other\nHost a\n", kInclude));
  EXPECT_FALSE(HasSshInclude("# Include ~/.ssh/overcap/config\n", kInclude));
  EXPECT_FALSE(HasSshInclude("match all\nInclude ~/.ssh/overcap/config\n", kInclude));
}

TEST(SshConfig, TheIncludeTakesTheLineEndsOfTheFile) {
  const std::string crlf = WithSshInclude("Host a\r\n  User b", kInclude);
  EXPECT_NE(crlf.find("Include ~/.ssh/overcap/config\r\n\r\nHost a\r\n  User b"), std::string::npos) << crlf;
  EXPECT_TRUE(WithSshInclude("Host a", kInclude).ends_with("config\n\nHost a"));
  EXPECT_TRUE(WithSshInclude("", kInclude).ends_with("config\n"));
  EXPECT_TRUE(WithSshInclude("\xEF\xBB\xBFHost a\n", kInclude).starts_with("\xEF\xBB\xBF#"));
}

// Lines that may look like marks, put together at random.
std::string AnyText() {
  const auto line = rc::gen::element<std::string>(
      "# overcap-dev begin: job j, attempt 1\n", "# overcap-dev end\n",
      "# overcap-big begin: job k, attempt 2;\n", "Host overcap-dev\n", "  User x\n", "Host *\r\n",
      "# overcap-dev begin: job\n", "\n", "no newline");
  std::string text;
  for (const std::string& one : *rc::gen::container<std::vector<std::string>>(line)) text += one;
  return text;
}

RC_GTEST_PROP(SshConfigProperty, AnEntryThatWasPutInIsThereOnceAndGoesAgain, ()) {
  const std::string text = AnyText();
  const std::string with = WithSshEntry(text, "dev", *SshHostEntry(Dev()));
  int found = 0;
  for (const SshEntry& entry : SshEntries(with)) found += entry.name == "dev";
  RC_ASSERT(found == 1);
  for (const SshEntry& entry : SshEntries(WithoutSshEntry(with, "dev"))) RC_ASSERT(entry.name != "dev");
  RC_ASSERT(HasSshInclude(WithSshInclude(text, kInclude), kInclude));
}

}  // namespace
}  // namespace overcap
