// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/host_name.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(HostNameTest, AShortNameIsTheHostWithAnyDomain) {
  const struct {
    const char *a, *b;
    bool same;
  } cases[] = {
      {"node1", "node1", true},
      {"node1", "NODE1", true},
      {"x3001", "x3001.hsn.cm.polaris.alcf.anl.gov", true},
      {"x3001.hsn.cm.polaris.alcf.anl.gov", "x3001", true},
      {"x3001.a.org", "x3001.b.org", false},
      {"x3001.a.org", "x3001.a.org.", true},
      {"node1", "node10", false},
      {"node1", "node10.a.org", false},
      {"node1", "node", false},
      {"", "", false},
      {"", "node1", false},
      {"10.0.0.1", "10.0.0.1", true},
      {"10.0.0.1", "10.0.0.2", false},
      {"10", "10.0.0.1", false},
      {"2001:db8::1", "2001:DB8::1", true},
      {"2001", "2001:db8::1", false},
      {"fe80::1.2.3.4", "fe80::1", false},
  };
  for (const auto& c : cases) EXPECT_EQ(SameHost(c.a, c.b), c.same) << c.a << " and " << c.b;
}

TEST(HostItselfTest, IsMeantByItsNamesAndAsLocalhostOnly) {
  for (const char* name : {"n1", "N1", "n1.example.org", "localhost", "127.0.0.1", "::1"})
    EXPECT_TRUE(IsHostItself(name, "n1")) << name;
  for (const char* name : {"n10", "127.0.0.2", "", "localhost2"})
    EXPECT_FALSE(IsHostItself(name, "n1")) << name;
}

TEST(HostNameTest, NamesThatAProgramCouldMisreadAreRefused) {
  for (const char* good : {"node1", "a-b_c.example.org", "10.0.0.1", "2001:db8::1", "fe80::1%eth0",
                           "alice@node1", "alice.b+c@10.0.0.1", "alice@::1"}) {
    EXPECT_EQ(HostNameProblem(good), "") << good;
  }
  const struct {
    const char *name, *problem;
  } cases[] = {
      {"", "a host name is empty"},
      {"-oProxyCommand=x", "a host name cannot begin with '-'"},
      {"-x@node1", "a user name cannot begin with '-'"},
      {"alice@-x", "a host name cannot begin with '-'"},
      {"@node1", "a user name is empty"},
      {"alice@", "a host name is empty"},
      {"a@b@c", "a user name cannot hold '@'"},
      {"a b", "a host name cannot hold such bytes"},
      {"a;b", "a host name cannot hold ';'"},
      {"n\xff", "a host name cannot hold such bytes"},
      {"a:b:c", "it is no IPv6 address"},
      {"fe80::1%eth0;x", "a host name cannot hold ';'"},
  };
  for (const auto& c : cases) EXPECT_EQ(HostNameProblem(c.name), c.problem) << c.name;
  EXPECT_NE(HostNameProblem(std::string_view("a\0b", 3)), "");
}

}  // namespace
}  // namespace overcap
