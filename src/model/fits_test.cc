// SPDX-License-Identifier: Apache-2.0
#include "model/fits.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

Machine FourGpus() {
  Machine machine{.host = "here", .cpus = 8, .mem_bytes = 16LL << 30, .gpus = {}};
  for (int i = 0; i < 4; ++i)
    machine.gpus.push_back({.index = i, .type = i < 3 ? "a40" : "a100", .uuid = {}});
  return machine;
}

std::string Message(const Resources& resources) {
  const auto fits = CheckFits(resources, FourGpus());
  return fits ? "fits" : fits.error().message;
}

TEST(Fits, WhatTheMachineHasFits) {
  EXPECT_EQ(Message({.gpus = 4, .cpus = 8, .gpu_type = {}}), "fits");
}

TEST(Fits, MoreGpusThanThereAre) {
  EXPECT_EQ(Message({.gpus = 8, .gpu_type = {}}), "asks for 8 GPUs, this machine has 4");
}

TEST(Fits, MoreGpusOfATypeThanThereAre) {
  EXPECT_EQ(Message({.gpus = 2, .gpu_type = "a100"}),
            "asks for 2 GPUs of type 'a100', this machine has 1 (3 x a40, 1 x a100)");
}

TEST(Fits, EitherTypeCounts) {
  EXPECT_EQ(Message({.gpus = 4, .gpu_type = "a100|a40"}), "fits");
}

TEST(Fits, MoreCpusThanThereAre) {
  EXPECT_EQ(Message({.cpus = 9, .gpu_type = {}}), "asks for 9 CPUs, this machine has 8");
}

TEST(Fits, MoreMemoryThanThereIs) {
  EXPECT_EQ(Message({.mem_bytes = 32LL << 30, .gpu_type = {}}),
            "asks for 32.0 GiB of memory, this machine has 16.0 GiB");
}

TEST(Fits, MoreRanksThanSixteenForEachProcessor) {
  EXPECT_EQ(Message({.ranks_per_node = 128, .gpu_type = {}}), "fits");
  EXPECT_EQ(Message({.ranks_per_node = 129, .gpu_type = {}}),
            "asks for 129 ranks on this machine, at most 128 are possible: 16 for each of its 8 processors");
  EXPECT_EQ(Message({.nodes = 4, .max_nodes = 4, .ranks_per_node = 33, .gpu_type = {}}).substr(0, 18),
            "asks for 132 ranks");
}

TEST(Fits, OneMachineIsOneNode) {
  EXPECT_EQ(Message({.nodes = 2, .gpu_type = {}}), "asks for 2 nodes, this machine is one");
}

TEST(Fits, AMachineWithoutGpusSaysSo) {
  const auto fits = CheckFits({.gpus = 1, .gpu_type = {}}, Machine{});
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().message, "asks for 1 GPU, this machine has none");
  EXPECT_EQ(fits.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
