// SPDX-License-Identifier: Apache-2.0
#include "sys/devices.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "sys/nvml.h"

namespace overcap {
namespace {

TEST(DevicesTest, TellsWhatThisMachineHas) {
  const MachineFacts facts = DetectMachine();
  EXPECT_FALSE(facts.host.empty());
  EXPECT_GE(facts.cpus, 1);
  EXPECT_LE(facts.cpus, sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(facts.mem_bytes, 16 << 20);
  EXPECT_LE(facts.mem_bytes, static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(facts.how != "none" || facts.gpus.empty());
  for (size_t i = 0; i < facts.gpus.size(); ++i) {
    EXPECT_EQ(facts.gpus[i].index, static_cast<int>(i));
    EXPECT_TRUE(facts.gpus[i].uuid.starts_with("GPU-")) << facts.gpus[i].uuid;
  }
}

TEST(DevicesTest, CountsOnlyTheProcessorsThatItMayUse) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  int last = -1;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) last = i;
  }
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const MachineFacts facts = DetectMachine();
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(facts.cpus, 1);
  EXPECT_EQ(facts.cpu_ids, std::vector<int>{last});
}

TEST(NvmlTest, ALibraryThatIsNotThereIsNotFound) {
  EXPECT_EQ(GpusFromNvml("libovercap-no-such-library.so.1").error().code, ErrorCode::kNotFound);
}

TEST(NvmlTest, ALibraryThatIsNoNvmlIsRefused) {
  EXPECT_EQ(GpusFromNvml("libm.so.6").error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace overcap
