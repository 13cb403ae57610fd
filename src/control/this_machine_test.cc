// SPDX-License-Identifier: Apache-2.0
#include "control/this_machine.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(MachineOf, TakesWhatWasDetected) {
  MachineFacts facts;
  facts.host = "here";
  facts.cpus = 8;
  facts.mem_bytes = 100;
  facts.gpus = {{2, "NVIDIA A40", "GPU-1", 50}};
  const Machine machine = MachineOf({}, facts);
  EXPECT_EQ(machine, (Machine{"here", 8, 100, {{2, "a40", "GPU-1", 50}}}));
}

TEST(MachineOf, WhatIsDeclaredTakesItsPlace) {
  MachineFacts facts;
  facts.host = "here";
  facts.cpus = 8;
  facts.gpus = {{2, "NVIDIA A40", "GPU-1", 50}};
  ClusterConfig declared;
  declared.gpus = {{"RTX 6000", 2, 7}, {"a100", 1, 0}};
  declared.mem_bytes = 5;
  const Machine machine = MachineOf(declared, facts);
  EXPECT_EQ(
      machine,
      (Machine{"here", 8, 5, {{0, "rtx_6000", "", 7}, {1, "rtx_6000", "", 7}, {2, "a100", "", 0}}, true}));
}

TEST(MachineOf, KnowsTheNamesOfTheCpusWhereTheyAreNotTheUsualOnes) {
  MachineFacts facts;
  facts.cpus = 2;
  facts.cpu_ids = {0, 1};
  EXPECT_EQ(MachineOf({}, facts).cpu_ids, std::vector<int>());
  facts.cpu_ids = {8, 9};
  EXPECT_EQ(MachineOf({}, facts).cpu_ids, (std::vector<int>{8, 9}));
  ClusterConfig declared;
  declared.cpus = 1;
  EXPECT_EQ(MachineOf(declared, facts).cpu_ids, (std::vector<int>{8, 9}));
  declared.cpus = 16;
  EXPECT_EQ(MachineOf(declared, facts).cpu_ids, std::vector<int>());
}

TEST(ThisMachine, IsDetectedOncePerBoot) {
  char folder[] = "/tmp/overcap_machine_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const Machine first = ThisMachine({}, folder, false);
  EXPECT_TRUE(std::filesystem::exists(std::string(folder) + "/machine.json"));
  EXPECT_EQ(ThisMachine({}, folder, false), first);
  EXPECT_EQ(ThisMachine({}, folder, true), first);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace overcap
