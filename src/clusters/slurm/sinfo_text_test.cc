// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sinfo_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace overcap {
namespace {

constexpr std::string_view kMark = "Mark1234";

std::string Recorded() {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/sinfo-marked.txt", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(SinfoText, EveryNodeIsThereOnceWithAllItsPartitions) {
  const auto info = ParseSinfo(Recorded(), kMark);
  ASSERT_TRUE(info) << info.error().message;
  ASSERT_EQ(info->nodes.size(), 4u);
  EXPECT_EQ(info->default_partition, "short");
  const SlurmNode& node = info->nodes[0];
  EXPECT_EQ(node.name, "n1");
  EXPECT_EQ(node.partitions, (std::vector<std::string>{"debug", "short", "long", "overcap", "user-overcap"}));
  EXPECT_EQ(node.raw_state, "mixed");
  EXPECT_TRUE(node.state.takes_jobs);
  EXPECT_EQ(node.cpus, 16);
  EXPECT_EQ(node.cpus_used, 3);
  EXPECT_EQ(node.mem_bytes, int64_t{16000} << 20);
  EXPECT_EQ(node.mem_used, int64_t{300} << 20);
  EXPECT_DOUBLE_EQ(node.load, 1.67);
  EXPECT_EQ(node.features, std::vector<std::string>{"a40"});
  EXPECT_EQ(node.gpus, (std::vector<SlurmNodeGpus>{{"a40", 4, 4, {0, 1, 2, 3}}}));
  EXPECT_EQ(node.GpuTotal(), 4);
  EXPECT_EQ(node.reason, "");
}

TEST(SinfoText, ANodeThatIsAwaySaysWhy) {
  const auto info = ParseSinfo(Recorded(), kMark);
  EXPECT_TRUE(info->nodes[3].state.draining);
  EXPECT_EQ(info->nodes[3].reason, "disk | bad\nsecond\x1f line");
}

TEST(SinfoText, ThePartitionsAreUpOrNot) {
  std::string text = Recorded();
  EXPECT_TRUE(ParseSinfo(text, kMark)->partition_up.at("short"));
  for (size_t at = 0; (at = text.find("\x1fup\x1f", at)) != std::string::npos;)
    text.replace(at + 1, 2, "drain");
  EXPECT_FALSE(ParseSinfo(text, kMark)->partition_up.at("short"));
}

TEST(SinfoText, GpusOfSeveralKindsAreReadWithTheirIndices) {
  EXPECT_EQ(ParseGpuGres("gpu:a40:4(S:0-1),gpu:t4:2,mps:a40:100", "gpu:a40:2(IDX:0,3),gpu:t4:0(IDX:N/A)"),
            (std::vector<SlurmNodeGpus>{{"a40", 4, 2, {0, 3}}, {"t4", 2, 0, {}}}));
  EXPECT_EQ(ParseGpuGres("gpu:8", "gpu:(null):3(IDX:0-2)"),
            (std::vector<SlurmNodeGpus>{{"", 8, 3, {0, 1, 2}}}));
  EXPECT_EQ(ParseGpuGres("gpu:a40:no_consume:4", "gpu:a40:0"),
            (std::vector<SlurmNodeGpus>{{"a40", 4, 0, {}}}));
  EXPECT_TRUE(ParseGpuGres("(null)", "").empty());
}

TEST(SinfoText, WildIndicesDoNoHarm) {
  const auto gpus = ParseGpuGres("gpu:a40:4", "gpu:a40:4(IDX:0-99999999999,5-2,x-y,-3)");
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_TRUE(gpus[0].used_indices.empty());
}

TEST(SinfoText, ACutAnswerIsNoAnswer) {
  const std::string text = Recorded();
  EXPECT_FALSE(ParseSinfo(text.substr(0, text.size() - 1), kMark));
  EXPECT_TRUE(ParseSinfo("", kMark)->nodes.empty());
}

}  // namespace
}  // namespace overcap
