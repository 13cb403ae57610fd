// SPDX-License-Identifier: Apache-2.0
#include "sys/devices.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/nvml.h"
#include "sys/posix_files.h"

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

std::string WithFake(const char* how, int64_t deadline_us) {
  setenv("FAKE_NVML", how, 1);
  const auto gpus = GpusFromNvml(OVERCAP_FAKE_NVML, deadline_us);
  unsetenv("FAKE_NVML");
  if (!gpus) return gpus.error().message;
  std::string text;
  for (const GpuFacts& gpu : *gpus) {
    text += StrCat(gpu.index, " ", gpu.name, " ", gpu.uuid, " ", gpu.memory_bytes >> 30, "; ");
  }
  return text;
}

TEST(NvmlTest, TellsTheGpusAndLeavesNoThreadBehindThatCouldTakeOurSignals) {
  const auto threads = [] { return PosixFiles().List("/proc/self/task")->size(); };
  const auto descriptors = [] { return PosixFiles().List("/proc/self/fd")->size(); };
  const size_t before = threads(), open_before = descriptors();
  EXPECT_EQ(WithFake("", 10'000'000), "0 NVIDIA A40 GPU-1 48; 1 NVIDIA A40 GPU-2 48; ");
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(descriptors(), open_before);
}

TEST(NvmlTest, ADriverThatFailsHangsOrCrashesIsAnErrorInTime) {
  EXPECT_EQ(WithFake("fail", 10'000'000), "nvml cannot start: Driver Not Loaded");
  EXPECT_EQ(WithFake("hang", 50'000), "nvml ended without an answer");
  EXPECT_EQ(WithFake("crash", 10'000'000), "nvml ended without an answer");
}

}  // namespace
}  // namespace overcap
