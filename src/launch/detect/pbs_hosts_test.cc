// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/pbs_hosts.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

using Hosts = std::vector<AllocatedHost>;

TEST(PbsHostsTest, AHostHasAsManySlotsAsItHasLines) {
  EXPECT_EQ(*ParseNodeFile("ml1\nml1\nml2\nml2\nml3\nml1\n", "nodes"),
            (Hosts{{"ml1", 3}, {"ml2", 2}, {"ml3", 1}}));
}

TEST(PbsHostsTest, NamesThatArePrefixesOfEachOtherAreDifferentHosts) {
  EXPECT_EQ(*ParseNodeFile("x1\nx10\nx1.a.org\nx1\n", "nodes"),
            (Hosts{{"x1", 2}, {"x10", 1}, {"x1.a.org", 1}}));
}

TEST(PbsHostsTest, BlankLinesAndWindowsLineEndsDoNotCount) {
  EXPECT_EQ(*ParseNodeFile("\n ml1 \r\n\nml2", "nodes"), (Hosts{{"ml1", 1}, {"ml2", 1}}));
}

TEST(PbsHostsTest, AFileOfAnotherKindIsRefused) {
  EXPECT_EQ(ParseNodeFile("", "aux/1.ml1").error().message, "node file 'aux/1.ml1' names no host");
  const auto bad = ParseNodeFile("ml1\nml2 slots=2\n", "nodes");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(bad.error().message, "nodes:2: host 'ml2 slots=2': a host name cannot hold such bytes");
}

}  // namespace
}  // namespace overcap
