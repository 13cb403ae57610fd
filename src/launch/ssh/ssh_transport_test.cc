// SPDX-License-Identifier: Apache-2.0
#include "launch/ssh/ssh_transport.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/ssh/ssh_runner.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// Runs a remote command as a login shell would, with a home of its own, and gives its exit status.
struct Home {
  std::string path;
  Home() {
    char name[] = "/tmp/overcap-copy-XXXXXX";
    path = mkdtemp(name);
  }
  ~Home() { (void)PosixFiles().RemoveTree(path); }
  int Run(const std::string& command, const std::string& input) const {
    EXPECT_TRUE(PosixFiles().WriteAtomic(path + "/input", input, false));
    const std::string line =
        StrCat("HOME=", path, " sh -c ", ShellQuote(command), " < ", path, "/input > ", path, "/out");
    const int status = system(line.c_str());
    return WEXITSTATUS(status);
  }
  std::string Out() const { return PosixFiles().Read(path + "/out").value(); }
};

const BinaryCopy kCopy{"overcap-1.2.3-0123456789ab", "#!/bin/sh\necho started $1\n"};

TEST(BinaryCopy, IsStoredOnceAndStarted) {
  const Home home;
  EXPECT_EQ(home.Run(kCopy.StoreCommand(), kCopy.bytes), 0);
  EXPECT_EQ(home.Out(), "");
  EXPECT_EQ(home.Run(kCopy.StoreCommand(), ""), 0);
  EXPECT_EQ(home.Out(), "there\n");
  EXPECT_EQ(home.Run(kCopy.NodeCommand(), ""), 0);
  EXPECT_EQ(home.Out(), "started launch-node\n");
  EXPECT_EQ(PosixFiles().List(home.path + "/.cache/overcap/bin").value(),
            std::vector<std::string>{kCopy.name});
}

TEST(BinaryCopy, ThatArrivesCutOffIsNoCopy) {
  const Home home;
  EXPECT_NE(home.Run(kCopy.StoreCommand(), kCopy.bytes.substr(1)), 0);
  EXPECT_TRUE(PosixFiles().List(home.path + "/.cache/overcap/bin").value().empty());
}

TEST(BinaryCopy, IsNamedByVersionAndContent) {
  const Home home;
  ASSERT_TRUE(PosixFiles().WriteAtomic(home.path + "/file", "abc", false));
  EXPECT_EQ(BinaryCopy::Of(home.path + "/file", "1.2.3")->name, "overcap-1.2.3-ba7816bf8f01");
  EXPECT_FALSE(BinaryCopy::Of(home.path + "/none", "1.2.3"));
}

TEST(MasterAddress, IsTheFirstHostsNameIfOthersCanHopeToResolveIt) {
  EXPECT_EQ(MasterAddress(1, "n1", true, "10.0.0.1", "head"), "127.0.0.1");
  EXPECT_EQ(MasterAddress(2, "n1", true, "10.0.0.1", "head"), "n1");
  EXPECT_EQ(MasterAddress(2, "n1", false, "10.0.0.1", "head"), "10.0.0.1");
  EXPECT_EQ(MasterAddress(2, "n1", false, "", "head"), "n1");
  EXPECT_EQ(MasterAddress(2, "localhost", true, "127.0.0.1", "head"), "head");
}

TEST(NameLookup, KnowsThisMachineAndNoInvalidName) {
  EXPECT_TRUE(NameLookup("localhost").Resolves(10'000'000));
  EXPECT_FALSE(NameLookup("a.name.that.is.invalid").Resolves(0));
}

TEST(IsThisHost, KnowsItsOwnNamesOnly) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  EXPECT_TRUE(IsThisHost(name));
  EXPECT_TRUE(IsThisHost("localhost"));
  EXPECT_FALSE(IsThisHost(std::string(name) + "0"));
  EXPECT_FALSE(IsThisHost("10.1.2.3"));
}

TEST(DefaultSshOptions, NeverAsk) {
  const std::vector<std::string> options = DefaultSshOptions();
  EXPECT_NE(std::find(options.begin(), options.end(), "BatchMode=yes"), options.end());
  EXPECT_NE(std::find(options.begin(), options.end(), kQuickKeyExchange), options.end());
}

}  // namespace
}  // namespace overcap
