// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/gpu_probe.h"

#include <gtest/gtest.h>

#include "launch/detect/testing/fake_programs.h"
#include "sys/nvml.h"

namespace overcap {
namespace {

int VisibleOf(const std::string& entry) {
  const auto visible = VisibleGpusOf(Variables({entry}));
  return visible ? visible->count : -1;
}

TEST(GpuProbeTest, TheMaskSaysHowManyAreVisible) {
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES=0,1,3"), 3);
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES=GPU-8932f937,MIG-1"), 2);
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES="), 0);
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES=-1"), 0);
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES=0,-1,2"), 1);
  EXPECT_EQ(VisibleOf("CUDA_VISIBLE_DEVICES=NoDevFiles"), 0);
  EXPECT_EQ(VisibleOf("HIP_VISIBLE_DEVICES=0,1"), 2);
  EXPECT_EQ(VisibleOf("ROCR_VISIBLE_DEVICES=0"), 1);
  EXPECT_EQ(VisibleOf("ZE_AFFINITY_MASK=0.0,0.1"), 2);
  EXPECT_EQ(VisibleOf("HOME=/"), -1);
}

class GpuProbeWithoutNvidia : public testing::Test {
 protected:
  void SetUp() override {
    if (GpusFromNvml()) GTEST_SKIP() << "NOT TESTED: this machine has a real NVML, which answers first";
  }
  FakePrograms programs_;
};

TEST_F(GpuProbeWithoutNvidia, NothingIsRunWhereThereIsNoDriver) {
  EXPECT_EQ(ProbeGpus(programs_).count, -1);
  EXPECT_TRUE(programs_.lines().empty());
}

TEST_F(GpuProbeWithoutNvidia, RocmSmiIsAskedWhenNvidiaSmiFindsNone) {
  programs_.Answer("nvidia-smi", "No devices were found\n");
  programs_.Answer("rocm-smi", R"({"card0": {"Card series": "AMD Instinct MI250X"}, "card1": {}})");
  const ProbedGpus probed = ProbeGpus(programs_);
  EXPECT_EQ(probed.count, 2);
  EXPECT_EQ(probed.how, "rocm-smi");
  EXPECT_EQ(probed.type, "mi250x");
  EXPECT_FALSE(probed.counts_cards);
}

TEST_F(GpuProbeWithoutNvidia, XpuSmiCountsCards) {
  programs_.Answer("xpu-smi discovery -j",
                   R"({"device_list": [{"device_name": "Intel(R) Data Center GPU Max 1550"}]})");
  const ProbedGpus probed = ProbeGpus(programs_);
  EXPECT_EQ(probed.count, 1);
  EXPECT_EQ(probed.type, "max_1550");
  EXPECT_TRUE(probed.counts_cards);
}

TEST_F(GpuProbeWithoutNvidia, WhatDoesNotWorkIsAProblemAndTheNextIsAsked) {
  programs_.Hang("nvidia-smi");
  programs_.Answer("rocm-smi", "Traceback\n", 1);
  programs_.Answer("xpu-smi", "\x01\xff");
  const ProbedGpus probed = ProbeGpus(programs_);
  EXPECT_EQ(probed.count, -1);
  ASSERT_EQ(probed.problems.size(), 3u);
  EXPECT_EQ(probed.problems[0], "'nvidia-smi' did not end in time");
  EXPECT_EQ(probed.problems[1], "rocm-smi failed with status 1: Traceback");
}

}  // namespace
}  // namespace overcap
