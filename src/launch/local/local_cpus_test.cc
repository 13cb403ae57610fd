// SPDX-License-Identifier: Apache-2.0
#include "launch/local/local_cpus.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

const std::vector<int> kEight = {0, 1, 2, 3, 4, 5, 6, 7};
// Four cores of two threads, as most machines number them; two NUMA nodes.
const CpuLayout kTwoThreads = {{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 0}, {5, 1}, {6, 2}, {7, 3}},
                               {{0, 1, 4, 5}, {2, 3, 6, 7}}};

// "0,1 2,3": the processors of each rank; or what is wrong.
std::string Bound(std::string_view spec, int ranks, const std::vector<int>& cpus = kEight,
                  const CpuLayout& layout = kTwoThreads) {
  const auto sets = CpusPerLocalRank(spec, ranks, cpus, layout);
  if (!sets) return sets.error().message;
  std::vector<std::string> shown;
  for (const auto& set : *sets) {
    std::vector<std::string> numbers;
    for (const int cpu : set) numbers.push_back(std::to_string(cpu));
    shown.push_back(Join(numbers, ","));
  }
  return Join(shown, " ");
}

TEST(LocalCpusTest, EachRankGetsWhatTheWordSays) {
  EXPECT_EQ(Bound("", 2), "");
  EXPECT_EQ(Bound("none", 2), "");
  EXPECT_EQ(Bound("cores", 2), "0,4,1,5 2,6,3,7");
  EXPECT_EQ(Bound("cores", 3), "0,4 1,5 2,6");
  EXPECT_EQ(Bound("cores", 2, kEight, {}), "0,1,2,3 4,5,6,7");
  EXPECT_EQ(Bound("threads", 4), "0,1 2,3 4,5 6,7");
  EXPECT_EQ(Bound("depth", 3), "0,1 2,3 4,5");
  EXPECT_EQ(Bound("depth:3", 2), "0,1,2 3,4,5");
  EXPECT_EQ(Bound("depth:2", 2, {3, 5, 8, 13}), "3,5 8,13");
  EXPECT_EQ(Bound("list:0-1:4,7", 2), "0,1 4,7");
  EXPECT_EQ(Bound("list:0:1:2", 2), "0 1");
  EXPECT_EQ(Bound("verbose,list:7-7:3", 2), "7 3");
  EXPECT_EQ(Bound("list:5", 1, {}), "5");
}

TEST(LocalCpusTest, RanksAreSpreadOverTheNumaNodesThatMayBeUsed) {
  EXPECT_EQ(Bound("numa", 2), "0,1,4,5 2,3,6,7");
  EXPECT_EQ(Bound("numa", 3), "0,1,4,5 0,1,4,5 2,3,6,7");
  EXPECT_EQ(Bound("numa", 1), "0,1,4,5");
  EXPECT_EQ(Bound("numa", 2, {2, 3}), "2,3 2,3");
  EXPECT_EQ(Bound("numa", 2, kEight, {}), "cpu-bind 'numa': this machine does not tell its NUMA nodes");
}

TEST(LocalCpusTest, WhatCannotBeDoneIsNamed) {
  const struct {
    const char* spec;
    int ranks;
    const char* message;
  } cases[] = {
      {"sockets", 2, "cpu-bind 'sockets': it is not known"},
      {"core:2", 2, "cpu-bind 'core:2': it is not known"},
      {"cores", 5, "cpu-bind 'cores': 5 ranks of a host need 5 cores, and there are 4 cores"},
      {"depth", 9, "cpu-bind 'depth': 9 ranks of a host need 9 processors, and there are 8 processors"},
      {"depth:5", 2, "cpu-bind 'depth:5': 2 ranks of a host need 10 processors, and there are 8 processors"},
      {"depth:0", 2, "cpu-bind 'depth:0': the depth is a number of processors, at least 1"},
      {"depth:x", 2, "cpu-bind 'depth:x': the depth is a number of processors, at least 1"},
      {"list:0-1", 2, "cpu-bind 'list:0-1': it is for 1 rank, and a host has 2"},
      {"list:", 1, "cpu-bind 'list:': '' is no list of processors"},
      {"list:0::1", 2, "cpu-bind 'list:0::1': '' is no list of processors"},
      {"list:3-1", 1, "cpu-bind 'list:3-1': '3-1' is no list of processors"},
      {"list:0-99999999", 1, "cpu-bind 'list:0-99999999': '0-99999999' is no list of processors"},
      {"list:8", 1, "cpu-bind 'list:8': processor 8 may not be used here"},
      {"cores", 0, "cpu-bind 'cores': there are no ranks"},
  };
  for (const auto& c : cases) EXPECT_EQ(Bound(c.spec, c.ranks), c.message);
  const auto bad = CpusPerLocalRank("x", 1, kEight, {});
  EXPECT_EQ(bad.error().code, ErrorCode::kUsage);
  EXPECT_NE(bad.error().hint.find("depth:N"), std::string::npos);
}

TEST(LocalCpusTest, TheLayoutIsReadAsTheSystemTellsIt) {
  const TempFolder folder;
  const auto write = [&](const std::string& path, const char* text) {
    std::filesystem::create_directories(std::filesystem::path(folder / path).parent_path());
    std::ofstream(folder / path) << text;
  };
  write("cpu/cpu0/topology/thread_siblings_list", "0,2\n");
  write("cpu/cpu2/topology/thread_siblings_list", "0,2\n");
  write("cpu/cpu1/topology/thread_siblings_list", "1-1\n");
  write("node/online", "0-1\n");
  write("node/node0/cpulist", "0-1\n");
  write("node/node1/cpulist", "\n");  // memory only
  const CpuLayout layout = ReadCpuLayout({0, 1, 2, 3}, folder.Path());
  EXPECT_EQ(layout.core_of, (std::map<int, int>{{0, 0}, {1, 1}, {2, 0}}));
  EXPECT_EQ(layout.numa, (std::vector<std::vector<int>>{{0, 1}}));
}

}  // namespace
}  // namespace overcap
