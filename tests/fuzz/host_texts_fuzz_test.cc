// SPDX-License-Identifier: Apache-2.0
// Whatever a user, a file or a scheduler writes about hosts: it is understood or refused, at once, without
// much memory. Seeds are fixed, so a failure comes again.
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "inputs.h"
#include "launch/detect/host_file.h"
#include "launch/detect/host_name.h"
#include "launch/detect/pbs_hosts.h"
#include "launch/local/local_cpus.h"
#include "model/host_list.h"

namespace overcap {
namespace {

const std::vector<std::string> kListWords = {
    "[", "]", ",", "-", ":", "/", "0", "9", "00", "1-3", " ", "[1-2]", "999999", "18446744073709551616", "n"};
const std::vector<std::string> kLists = {
    "a1,b2",          "node[1-2],x3", "rack[1-2]n[01-16]",
    "gpu-[01-02]-ib", "n[0-8:2]",     "a[1-2]b[1-2]c[1-2]",
    "n[08-11,3,5-7]", " a , b ",      "n[999999999999999998-999999999999999999]"};

TEST(HostTextsFuzz, AHostListIsExpandedOrRefused) {
  ForEachInput(Mutator(kLists, kListWords, 1), [&](const std::string& input) {
    const auto hosts = ExpandHostList(input);
    if (!hosts) return ExpectOneLine(hosts.error(), ErrorCode::kUsage);
    EXPECT_LE(hosts->size(), kMaxHosts);
    if (hosts->size() > 1000) return true;
    for (const auto style : {HostListStyle::kFull, HostListStyle::kSlurm}) {
      const auto again = ExpandHostList(CompressHostList(*hosts, style));
      EXPECT_TRUE(again && *again == *hosts);
    }
    return true;
  });
}

TEST(HostTextsFuzz, AHostFileIsReadOrRefused) {
  const std::vector<std::string> files = {
      "node1\nnode2 slots=4\n", "# c\nnode3:4\r\nnode[5-8],x9 slots=4 max_slots=8\n", "alice@node10 gpus=2\n",
      "[2001:db8::1]:4\nfe80::1%eth0\n", "n1 user=bob cpu=2\nn1\nn1\n"};
  const std::vector<std::string> words = {
      "slots=", "max_slots=", "=",     " ",     "\n",          ":4", "#",      "@",    "[",
      "]",      "::",         "gpus=", "user=", "99999999999", "-",  "n[1-3]", "\r\n", "%"};
  ForEachInput(Mutator(files, words, 2), [&](const std::string& input) {
    const auto hosts = ParseHostFile(input, "f");
    if (!hosts) return ExpectOneLine(hosts.error(), ErrorCode::kUsage);
    EXPECT_FALSE(hosts->empty());
    for (const AllocatedHost& host : *hosts) {
      EXPECT_EQ(HostNameProblem(host.name), "");
      EXPECT_GE(host.slots, 0);
      EXPECT_GE(host.gpus, -1);
    }
    return true;
  });
}

TEST(HostTextsFuzz, APbsNodeFileIsReadOrRefused) {
  ForEachInput(Mutator({"ml1\nml1\nml2\n", "x3001.a.org\n"}, {"\n", "ml1", " ", "-", "\r\n"}, 3),
               [&](const std::string& input) {
                 const auto hosts = ParseNodeFile(input, "f");
                 if (!hosts) return ExpectOneLine(hosts.error(), ErrorCode::kCorrupt);
                 for (const AllocatedHost& host : *hosts) EXPECT_GE(host.slots, 1);
                 return true;
               });
}

TEST(HostTextsFuzz, ACpuBindingGivesEachRankProcessorsThatMayBeUsed) {
  const std::vector<int> cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::string> texts = {"none",    "cores",        "depth",
                                          "depth:2", "list:0-3:4-7", "verbose,list:1:2,3"};
  const std::vector<std::string> words = {":",       ",", "-", "0", "7", "list:", "depth:", "999999999999",
                                          "verbose,"};
  ForEachInput(Mutator(texts, words, 7), [&](const std::string& input) {
    const auto sets = CpusPerLocalRank(input, 2, cpus, {});
    if (!sets) return ExpectOneLine(sets.error(), ErrorCode::kUsage);
    EXPECT_TRUE(sets->empty() || sets->size() == 2);
    for (const auto& set : *sets) {
      EXPECT_FALSE(set.empty());
      for (const int cpu : set) EXPECT_TRUE(cpu >= 0 && cpu <= 7);
    }
    return true;
  });
}

}  // namespace
}  // namespace overcap
