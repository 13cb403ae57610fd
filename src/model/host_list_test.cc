// SPDX-License-Identifier: Apache-2.0
#include "model/host_list.h"

#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

using Hosts = std::vector<std::string>;

std::string Expanded(std::string_view list) {
  const auto hosts = ExpandHostList(list);
  return hosts ? Join(*hosts, " ") : hosts.error().message;
}

TEST(HostListTest, ListsExpandAsSlurmDoes) {
  const struct {
    const char *list, *hosts;
  } cases[] = {
      {"", ""},
      {",", ""},
      {"a", "a"},
      {"a1,b2", "a1 b2"},
      {"a,,b", "a b"},
      {" a , b ", "a b"},
      {"a b\tc\nd\r\n", "a b c d"},
      {"a,b,a", "a b a"},
      {"node[1-2],x3", "node1 node2 x3"},
      {"n[1,3,5-7]", "n1 n3 n5 n6 n7"},
      {"n[3,1,2]", "n3 n1 n2"},
      {"n[1-2],n[2-3]", "n1 n2 n2 n3"},
      {"n[08-11]", "n08 n09 n10 n11"},
      {"n[099-100]", "n099 n100"},
      {"n[8-011]", "n8 n9 n10 n11"},
      {"x[001-3]", "x001 x002 x003"},
      {"n[005]", "n005"},
      {"[1-3]", "1 2 3"},
      {"rack[1-2]n[01-03]", "rack1n01 rack1n02 rack1n03 rack2n01 rack2n02 rack2n03"},
      {"b[1-2][3-4]", "b13 b14 b23 b24"},
      {"a[1-2]b[1-2]c[1-2]", "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2"},
      {"user@h[1-2]", "user@h1 user@h2"},
      {"n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999"},
  };
  for (const auto& c : cases) EXPECT_EQ(Expanded(c.list), c.hosts) << c.list;
}

TEST(HostListTest, TextMayFollowTheLastBracketAndRangesMayHaveSteps) {
  EXPECT_EQ(Expanded("gpu-[01-02]-ib"), "gpu-01-ib gpu-02-ib");
  EXPECT_EQ(Expanded("h[1-2].example.org,z"), "h1.example.org h2.example.org z");
  EXPECT_EQ(Expanded("a[1-2]b[3-4]c"), "a1b3c a1b4c a2b3c a2b4c");
  EXPECT_EQ(Expanded("n[0-8:4]"), "n0 n4 n8");
  EXPECT_EQ(Expanded("n[01-10/4,3]"), "n01 n05 n09 n3");
  EXPECT_EQ(Expanded("n[1-2:9]"), "n1");
}

TEST(HostListTest, WhatIsWrongIsNamed) {
  const struct {
    const char *list, *message;
  } cases[] = {
      {"n[1-", "host list 'n[1-': bracket is not closed"},
      {"a,n[1-2,b", "host list 'n[1-2,b': bracket is not closed"},
      {"n]", "host list 'n]': ']' has no '[' before it"},
      {"n[1-2]]", "host list 'n[1-2]]': ']' has no '[' before it"},
      {"n[[1-2]]", "host list 'n[[1-2]]': bracket inside a bracket"},
      {"n[]", "host list 'n[]': '' is no number and no range"},
      {"n[1,,2]", "host list 'n[1,,2]': '' is no number and no range"},
      {"n[3-1]", "host list 'n[3-1]': '3-1' is no number and no range"},
      {"n[-1]", "host list 'n[-1]': '-1' is no number and no range"},
      {"n[1-2-3]", "host list 'n[1-2-3]': '1-2-3' is no number and no range"},
      {"n[ 1]", "host list 'n[ 1]': ' 1' is no number and no range"},
      {"n[+1]", "host list 'n[+1]': '+1' is no number and no range"},
      {"n[1-4:0]", "host list 'n[1-4:0]': '1-4:0' is no number and no range"},
      {"n[1:2]", "host list 'n[1:2]': '1:2' is no number and no range"},
      {"n[1-4:]", "host list 'n[1-4:]': '1-4:' is no number and no range"},
      {"n[1000000000000000000]",
       "host list 'n[1000000000000000000]': '1000000000000000000' is no number and no range"},
      {"n[1-1000001]", "host list 'n[1-1000001]': more than 1000000 hosts"},
      {"a,n[1-1000000]", "host list 'n[1-1000000]': more than 1000000 hosts"},
      {"n[0-999999999999999999]m[0-999999999999999999]x[0-999999999999999999]",
       "host list 'n[0-999999999999999999]m[0-999999999999999999]x[0-9999999999...': more than 1000000 "
       "hosts"},
  };
  for (const auto& c : cases) {
    const auto hosts = ExpandHostList(c.list);
    ASSERT_FALSE(hosts) << c.list;
    EXPECT_EQ(hosts.error().code, ErrorCode::kUsage);
    EXPECT_EQ(hosts.error().message, c.message);
  }
}

TEST(HostListTest, AMillionHostsAreTheMostAndLongNamesDoNotFillTheMemory) {
  EXPECT_EQ(ExpandHostList("n[1-1000000]")->size(), kMaxHosts);
  EXPECT_EQ(ExpandHostList("n[0-999]m[0-999]")->back(), "n999m999");
  EXPECT_NE(Expanded(std::string(100'000, 'n') + "[1-1000000]").find("too much text"), std::string::npos);
}

// Lines of "LIST -> what Slurm answers -> what we answer", by '|'.
TEST(HostListTest, OddCasesOfSlurmAreDecidedOn) {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/hostlists.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto fields = Split(line, '|');
    ASSERT_EQ(fields.size(), 3u) << line;
    const auto hosts = ExpandHostList(fields[0]);
    EXPECT_EQ(hosts ? Join(*hosts, " ") : "refused", fields[2]) << line;
    ++cases;
  }
  EXPECT_GE(cases, 20);
}

TEST(HostListTest, HostsAreCompressedAsSlurmDoesOrShorter) {
  const struct {
    const char *hosts, *list;
  } cases[] = {
      {"", ""},
      {"a", "a"},
      {"a b", "a,b"},
      {"a1", "a1"},
      {"a1 a3", "a[1,3]"},
      {"a1 a2 a3", "a[1-3]"},
      {"a3 a2 a1", "a[3,2,1]"},
      {"a1 a1", "a[1,1]"},
      {"a a", "a,a"},
      {"a9 a10", "a[9-10]"},
      {"a09 a10", "a[09-10]"},
      {"a99 a100", "a[99-100]"},
      {"a1 a01", "a[1,01]"},
      {"a8 a9 a010", "a[8-9,010]"},
      {"a1 b1 a2 b2", "a1,b1,a2,b2"},
      {"node1 node10 node2", "node[1,10,2]"},
      {"n1-ib n2-ib n4-ib", "n[1-2,4]-ib"},
      {"r1n1 r1n2 r2n1 r2n2", "r[1-2]n[1-2]"},
      {"r1n1 r1n2 r2n1 r2n3", "r1n[1-2],r2n[1,3]"},
      {"r1n1 r2n1 r1n2 r2n2", "r[1-2]n1,r[1-2]n2"},
      {"r1n1-x r1n2-x r2n1-x r2n2-x", "r[1-2]n[1-2]-x"},
      {"1 2 3", "[1-3]"},
      {"n999999999999999998 n999999999999999999 n1000000000000000000",
       "n[999999999999999998-999999999999999999],n1000000000000000000"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CompressHostList(*ExpandHostList(c.hosts)), c.list) << c.hosts;
    EXPECT_EQ(Expanded(c.list), c.hosts) << c.list;
  }
}

TEST(HostListTest, ForSlurmNoTextFollowsABracketAndNoneIsTooLong) {
  const auto slurm = [](const char* list) {
    return CompressHostList(*ExpandHostList(list), HostListStyle::kSlurm);
  };
  EXPECT_EQ(slurm("n[1-2]-ib,m[1-3]"), "n1-ib,n2-ib,m[1-3]");
  EXPECT_EQ(slurm("r1n1,r2n1,r2n2"), "r1n1,r2n[1-2]");
  EXPECT_EQ(slurm("rack[1-2]n[01-16]"), "rack[1-2]n[01-16]");
  EXPECT_EQ(slurm("n[1-65540]"), "n[1-65536],n[65537-65540]");
}

std::string OddName() {
  const auto piece = rc::gen::oneOf(rc::gen::elementOf(Hosts{"n",
                                                             "rack",
                                                             "-",
                                                             ".",
                                                             "0",
                                                             "00",
                                                             "9",
                                                             "09",
                                                             "10",
                                                             "99",
                                                             "x",
                                                             "999999999",
                                                             "1234567890123456789",
                                                             "@",
                                                             ":",
                                                             "/",
                                                             "{1-2}",
                                                             "\xff",
                                                             "*",
                                                             "=",
                                                             "|",
                                                             "'"}),
                                    rc::gen::container<std::string>(1, rc::gen::inRange('0', '9')));
  return Join(*rc::gen::resize(5, rc::gen::nonEmpty(rc::gen::container<Hosts>(piece))), "");
}

RC_GTEST_PROP(HostListProperty, WhatIsCompressedExpandsToTheSameHosts, ()) {
  Hosts hosts;
  const int count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) hosts.push_back(OddName());
  for (const auto style : {HostListStyle::kFull, HostListStyle::kSlurm}) {
    const auto again = ExpandHostList(CompressHostList(hosts, style));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == hosts);
  }
}

// Names near each other, so that runs, gaps, steps back and changes of width come together.
RC_GTEST_PROP(HostListProperty, NeighboursSurviveInBothDirections, ()) {
  Hosts hosts;
  const int count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(*rc::gen::inRange(95, 105));
    if (*rc::gen::inRange(0, 4) == 0) number.insert(0, static_cast<size_t>(*rc::gen::inRange(0, 3)), '0');
    hosts.push_back(StrCat(*rc::gen::elementOf(Hosts{"n", "n", "n1", "r1n", "r2n", ""}), number,
                           *rc::gen::elementOf(Hosts{"", "", "", "-ib"})));
  }
  const std::string list = CompressHostList(hosts);
  RC_ASSERT(*ExpandHostList(list) == hosts);
  RC_ASSERT(list.size() <= Join(hosts, ",").size() + hosts.size());
}

RC_GTEST_PROP(HostListProperty, AnyTextIsExpandedOrRefusedInOneLine, ()) {
  const std::string list =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("[]-,:/0123456789an \n\xc3")));
  const auto hosts = ExpandHostList(list);
  if (!hosts) {
    RC_ASSERT(hosts.error().code == ErrorCode::kUsage);
    RC_ASSERT(hosts.error().message.find('\n') == std::string::npos);
    return;
  }
  RC_ASSERT(*ExpandHostList(CompressHostList(*hosts)) == *hosts);
}

}  // namespace
}  // namespace overcap
