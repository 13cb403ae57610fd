// SPDX-License-Identifier: Apache-2.0
#include "sys/nvidia_smi.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;

// An nvidia-smi that is this script, first in PATH while the object lives.
class FakeNvidiaSmi {
 public:
  explicit FakeNvidiaSmi(const std::string& script) : old_path_(getenv("PATH")) {
    const std::string file = folder_ / "nvidia-smi";
    EXPECT_TRUE(PosixFiles().WriteAtomic(file, "#!/bin/sh\n" + script, false));
    chmod(file.c_str(), 0700);
    setenv("PATH", (folder_.Path() + ":" + old_path_).c_str(), 1);
  }
  ~FakeNvidiaSmi() { setenv("PATH", old_path_.c_str(), 1); }
  std::string File(const std::string& name) const { return folder_ / name; }

 private:
  TempFolder folder_;
  std::string old_path_;
};

TEST(NvidiaSmiTest, ParsesATableOfGpus) {
  const auto gpus = ParseNvidiaSmi(
      "0, NVIDIA A40, GPU-d1b0, 46068\n"
      "1, NVIDIA H200, GPU-d1b1, 143771\n");
  ASSERT_TRUE(gpus);
  EXPECT_EQ(*gpus, (std::vector<GpuFacts>{{0, "NVIDIA A40", "GPU-d1b0", 46068LL << 20},
                                          {1, "NVIDIA H200", "GPU-d1b1", 143771LL << 20}}));
}

TEST(NvidiaSmiTest, MemoryThatIsNotToldIsZero) {
  EXPECT_EQ(ParseNvidiaSmi("0, NVIDIA GB10, GPU-1, [N/A]\n").value(),
            (std::vector<GpuFacts>{{0, "NVIDIA GB10", "GPU-1", 0}}));
}

TEST(NvidiaSmiTest, NothingAndNoDevicesAreNoGpus) {
  EXPECT_EQ(ParseNvidiaSmi("").value().size(), 0u);
  EXPECT_EQ(ParseNvidiaSmi("\n").value().size(), 0u);
  EXPECT_EQ(ParseNvidiaSmi("No devices were found\n").value().size(), 0u);
}

TEST(NvidiaSmiTest, RefusesWhatIsCutOffOrNoTable) {
  for (const char* output : {
           "0, NVIDIA A40, GPU-1, 460",                      // no newline: the number may go on
           "0, NVIDIA A40, GPU-1\n",                         // a field is missing
           "0, NVIDIA A40, GPU-1, 46068\n1, NVIDIA A40, G",  // the second line is cut off
           "0, NVIDIA A40, GPU-1, 46068, extra\n",           //
           "x, NVIDIA A40, GPU-1, 46068\n",                  //
           "-1, NVIDIA A40, GPU-1, 46068\n",                 //
           "0, , GPU-1, 46068\n",                            //
           "0, NVIDIA A40, , 46068\n",                       //
           "0, NVIDIA A40, GPU-1, -5\n",                     //
           "0, NVIDIA A40, GPU-1, 99999999999999999999\n",   //
           "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n",
           "\x01\xff\xfe garbage\n",
       }) {
    const auto gpus = ParseNvidiaSmi(output);
    ASSERT_FALSE(gpus) << output;
    EXPECT_EQ(gpus.error().code, ErrorCode::kCorrupt);
  }
}

TEST(NvidiaSmiTest, RunsTheProgramWithItsArguments) {
  const FakeNvidiaSmi smi(
      "[ \"$2\" = --format=csv,noheader,nounits ] && echo '0, NVIDIA A40, GPU-1, 46068'\n");
  EXPECT_EQ(GpusFromNvidiaSmi(milliseconds(10000)).value(),
            (std::vector<GpuFacts>{{0, "NVIDIA A40", "GPU-1", 46068LL << 20}}));
}

TEST(NvidiaSmiTest, AFailureIsReportedWithItsOwnWords) {
  const FakeNvidiaSmi smi("echo 'Failed to initialize NVML: Driver/library version mismatch' >&2; exit 18\n");
  const auto gpus = GpusFromNvidiaSmi(milliseconds(10000));
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(gpus.error().message,
            "nvidia-smi failed with status 18: Failed to initialize NVML: Driver/library version mismatch");
}

TEST(NvidiaSmiTest, OneThatHangsIsKilledWithItsChildren) {
  const FakeNvidiaSmi smi("mkfifo \"$0.fifo\"; cat \"$0.fifo\" & cat \"$0.fifo\"\n");
  const auto gpus = GpusFromNvidiaSmi(milliseconds(100));
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().code, ErrorCode::kUnavailable);
}

TEST(NvidiaSmiTest, WithoutTheProgramItIsNotFound) {
  const std::string old = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const auto gpus = GpusFromNvidiaSmi(milliseconds(100));
  setenv("PATH", old.c_str(), 1);
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace overcap
