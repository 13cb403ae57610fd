// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tres_text.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(TresText, SqueuesAndSacctsOrderMeanTheSame) {
  const SlurmTres expected{2, 4, 400 << 20, 3, {{"a40", 2}, {"2080_ti", 1}}};
  EXPECT_EQ(ParseTres("billing=4,cpu=4,gres/gpu:a40=2,gres/gpu:2080_ti=1,gres/gpu=3,mem=400M,node=2"),
            expected);
  EXPECT_EQ(ParseTres("cpu=4,mem=400M,node=2,billing=4,gres/gpu=3,gres/gpu:a40=2,gres/gpu:2080_ti=1"),
            expected);
}

TEST(TresText, GpusAreCountedAlsoWhereOnlyTheirTypesAreTold) {
  EXPECT_EQ(ParseTres("cpu=1,gres/gpu:a40=2,gres/gpu:t4=1").gpus, 3);
  EXPECT_EQ(ParseTres("cpu=1,gres/gpu=2").gpu_types.size(), 0u);
}

TEST(TresText, WhatWasAskedForTellsTheGpusWhereSlurmDoesNotCountThem) {
  const auto asked = [](std::string_view text, int times) {
    SlurmTres tres;
    AddAskedGpus(text, times, &tres);
    return tres;
  };
  EXPECT_EQ(asked("gres:gpu:4", 1), (SlurmTres{0, 0, 0, 4, {}}));
  EXPECT_EQ(asked("gres:gpu:a40:2,gres:shard:3", 3), (SlurmTres{0, 0, 0, 6, {{"a40", 6}}}));
  EXPECT_EQ(asked("gres/gpu:a40:2", 1), (SlurmTres{0, 0, 0, 2, {{"a40", 2}}}));
  EXPECT_EQ(asked("gres:gpu", 2).gpus, 2);
  EXPECT_EQ(asked("gres:gpu:a40", 1), (SlurmTres{0, 0, 0, 1, {{"a40", 1}}}));
  for (const char* text : {"", "N/A", "gres", "gres:", "gres:mps:50", "gpu:4"}) {
    EXPECT_EQ(asked(text, 1), SlurmTres{}) << text;
  }
}

TEST(TresText, WhatIsNotUnderstoodIsLeftOut) {
  EXPECT_EQ(ParseTres(""), SlurmTres{});
  EXPECT_EQ(ParseTres("N/A"), SlurmTres{});
  EXPECT_EQ(ParseTres(",,=,cpu,cpu=x,gres/gpu:=4,gres/gpux=4,node=-3,mem=M"), SlurmTres{});
}

TEST(TresText, MemoryIsInPowersOf1024) {
  EXPECT_EQ(ParseSlurmMemory("16000"), int64_t{16000} << 20);
  EXPECT_EQ(ParseSlurmMemory("512K"), 512 << 10);
  EXPECT_EQ(ParseSlurmMemory("1.50G"), int64_t{1536} << 20);
  EXPECT_EQ(ParseSlurmMemory("2T"), int64_t{2} << 40);
  for (const char* text : {"", "M", "-1G", "1X", "99999999999E", "nan", "inf", "1e5G", "0x10"}) {
    EXPECT_EQ(ParseSlurmMemory(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace overcap
