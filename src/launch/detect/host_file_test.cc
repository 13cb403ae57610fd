// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/host_file.h"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

// "node1*4 node2 node3/2": slots behind '*', GPUs behind '/'; or what is wrong.
std::string Parsed(std::string_view text) {
  const auto hosts = ParseHostFile(text, "hosts.txt");
  if (!hosts) return hosts.error().message;
  std::vector<std::string> shown;
  for (const AllocatedHost& host : *hosts) {
    shown.push_back(StrCat(host.name, host.slots != 0 ? StrCat("*", host.slots) : "",
                           host.gpus >= 0 ? StrCat("/", host.gpus) : ""));
  }
  return Join(shown, " ");
}

TEST(HostFileTest, EveryUsualFormIsRead) {
  const struct {
    const char *text, *hosts;
  } cases[] = {
      {"node1\nnode2\n", "node1 node2"},
      {"node1", "node1"},
      {"\xef\xbb\xbfnode1\n", "node1"},
      {"node1\r\nnode2 slots=2\r\n", "node1 node2*2"},
      {"# all\n\n  node1  # first\n\t\n#node2\n", "node1"},
      {"node1 slots=4", "node1*4"},
      {"node1 slots = 4 max_slots= 8", "node1*4"},
      {"node1 max-slots=8", "node1*8"},
      {"node1 cpu=3\nnode2 count=2", "node1*3 node2*2"},
      {"node1:4", "node1*4"},
      {"node1:4 max_slots=4", "node1*4"},
      {"node[1-3] slots=8", "node1*8 node2*8 node3*8"},
      {"rack[1-2]n[01-02]:2", "rack1n01*2 rack1n02*2 rack2n01*2 rack2n02*2"},
      {"n[0-4:2]", "n0 n2 n4"},
      {"n[0-4:2]:3", "n0*3 n2*3 n4*3"},
      {"gpu-[01-02]-ib:4", "gpu-01-ib*4 gpu-02-ib*4"},
      {"a,b slots=2", "a*2 b*2"},
      {"a\na\nb\na\n", "a*3 b"},
      {"a slots=2\na slots=3\n", "a*5"},
      {"a\na slots=4\n", "a*5"},
      {"node1\nnode10\nnode1\n", "node1*2 node10"},
      {"alice@node1 slots=2", "alice@node1*2"},
      {"node1 user=alice", "alice@node1"},
      {"2001:db8::1", "2001:db8::1"},
      {"[2001:db8::1]", "2001:db8::1"},
      {"[2001:db8::1]:4", "2001:db8::1*4"},
      {"alice@[::1]:2", "alice@::1*2"},
      {"[1-2]n", "1n 2n"},
      {"fe80::1%eth0 slots=2", "fe80::1%eth0*2"},
      {"node1 gpus=2 slots=4\nnode2 gpus=0", "node1*4/2 node2/0"},
  };
  for (const auto& c : cases) EXPECT_EQ(Parsed(c.text), c.hosts) << c.text;
}

TEST(HostFileTest, WhatIsWrongIsNamedWithItsLine) {
  const std::string known = "known are slots=N, max_slots=N, gpus=N, user=NAME";
  const std::pair<std::string, std::string> cases[] = {
      {"", "host file 'hosts.txt' names no host"},
      {"# nothing\n\n", "host file 'hosts.txt' names no host"},
      {"a\n\nb slot=4\n", "hosts.txt:3: 'slot' is not known; " + known},
      {"a 4", "hosts.txt:1: '4' is no setting; " + known},
      {"a b", "hosts.txt:1: 'b' is no setting; " + known},
      {"a slots=0", "hosts.txt:1: slots must be a number from 1 to 1000000, not '0'"},
      {"a slots=", "hosts.txt:1: slots must be a number from 1 to 1000000, not ''"},
      {"a slots=x", "hosts.txt:1: slots must be a number from 1 to 1000000, not 'x'"},
      {"a slots=99999999999999999999",
       "hosts.txt:1: slots must be a number from 1 to 1000000, not '99999999999999999999'"},
      {"a gpus=-1", "hosts.txt:1: gpus must be a number from 0 to 1000000, not '-1'"},
      {"a:0", "hosts.txt:1: the number behind ':' must be a number from 1 to 1000000, not '0'"},
      {"a:x", "hosts.txt:1: the number behind ':' must be a number from 1 to 1000000, not 'x'"},
      {"a:2 slots=3", "hosts.txt:1: slots are told twice"},
      {"a slots=4 max_slots=2", "hosts.txt:1: slots=4 is more than max_slots=2"},
      {"n[1-", "hosts.txt:1: host list 'n[1-': bracket is not closed"},
      {"a\n-oProxyCommand=x", "hosts.txt:2: host '-oProxyCommand=x': a host name cannot begin with '-'"},
      {"a:2,b:3", "hosts.txt:1: host 'a:2,b:3': it is no IPv6 address"},
      {"alice@a user=bob", "hosts.txt:1: host 'alice@a': the user is told twice"},
      {"a user=-x", "hosts.txt:1: host '-x@a': a user name cannot begin with '-'"},
      {"a user=", "hosts.txt:1: user must not be empty"},
      {"[::1]x", "hosts.txt:1: '[::1]x' has text behind the address"},
      {"^a", "hosts.txt:1: host '^a': a host name cannot hold '^'"},
      {",", "hosts.txt:1: ',' names no host"},
      {"a slots=1000000\na", "hosts.txt:2: host 'a' has too many slots"},
      {"n[1-600000]\nn[1-600000]", "hosts.txt:2: more than 1000000 hosts"},
  };
  for (const auto& [text, message] : cases) {
    const auto hosts = ParseHostFile(text, "hosts.txt");
    ASSERT_FALSE(hosts) << text;
    EXPECT_EQ(hosts.error().code, ErrorCode::kUsage);
    EXPECT_EQ(hosts.error().message, message);
  }
}

TEST(HostFileTest, AFileIsReadAndNamedInErrors) {
  const TempFolder folder;
  const std::string path = folder / "hosts";
  std::ofstream(path) << "a slots=2\nb:3\n";
  EXPECT_EQ(*ReadHostFile(path), (std::vector<AllocatedHost>{{"a", 2}, {"b", 3}}));
  std::ofstream(path) << "a slots=\n";
  EXPECT_EQ(ReadHostFile(path).error().message,
            path + ":1: slots must be a number from 1 to 1000000, not ''");
}

TEST(HostFileTest, AFileThatCannotBeReadIsAUsageError) {
  const TempFolder folder;
  const auto missing = ReadHostFile(folder / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kUsage);
  EXPECT_EQ(missing.error().message, "host file '" + (folder / "none") + "': No such file or directory");
  EXPECT_EQ(ReadHostFile(folder.Path()).error().message, "host file '" + folder.Path() + "': Is a directory");
}

TEST(HostFileTest, APipeMayBeGiven) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(write(ends[1], "a\nb:2\n", 6), 6);
  close(ends[1]);
  EXPECT_EQ(*ReadHostFile(StrCat("/dev/fd/", ends[0])), (std::vector<AllocatedHost>{{"a", 0}, {"b", 2}}));
  close(ends[0]);
}

TEST(HostFileTest, APipeThatNobodyWritesToIsAnEmptyFile) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadHostFile(folder / "pipe").error().message,
            "host file '" + (folder / "pipe") + "' names no host");
}

}  // namespace
}  // namespace overcap
