// SPDX-License-Identifier: Apache-2.0
#include "sys/gpu_filter.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

TEST(GpuFilter, ReadsWhatTheDriverSaysOfAGpu) {
  const NvidiaNode node = ParseNvidiaInformation(
      "Model: \t\t NVIDIA A40\nIRQ:   \t\t 54\nGPU UUID: \t GPU-1b2c\nDevice Minor: \t 3\nGPU Excluded:\t "
      "No\n");
  EXPECT_EQ(node.minor, 3);
  EXPECT_EQ(node.uuid, "GPU-1b2c");
  EXPECT_EQ(ParseNvidiaInformation("").minor, -1);
}

// There is no such GPU here: the kernel says ENXIO to who may open its file, EPERM to who may not.
class GpuGroupTest : public testing::Test {
 protected:
  ~GpuGroupTest() override {
    if (!group_) return;
    EXPECT_TRUE(group_->KillAll(std::chrono::seconds(5)));
    EXPECT_TRUE(group_->Remove(std::chrono::seconds(5)));
  }
  // The errno with which a process of the group opens character device 195:minor.
  int ErrnoOf(int minor) {
    const std::string node = folder_ / StrCat("nvidia", minor);
    if (mknod(node.c_str(), S_IFCHR | 0666, makedev(kNvidiaMajor, static_cast<unsigned>(minor))) != 0)
      return -errno;
    const pid_t child = fork();
    if (child == 0) {
      for (const std::string& file : group_->ProcsFiles()) {
        const int procs = open(file.c_str(), O_WRONLY);
        if (write(procs, "0", 1) != 1) _exit(255);
      }
      _exit(open(node.c_str(), O_RDWR) >= 0 ? 0 : errno);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  void Check(int64_t memory_bytes) {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: needs root";
    auto made = Cgroup::Create({StrCat("overcap-test-gpus-", getpid(), "-", memory_bytes), memory_bytes, "",
                                std::vector<int>{1, 3}});
    if (!made) GTEST_SKIP() << "NOT TESTED, no control group here: " << made.error().message;
    group_ = std::move(*made);
    if (!group_->LimitsGpus()) GTEST_SKIP() << "NOT TESTED: this kernel does not restrict devices";
    for (const int minor : {1, 3, 254, 255}) EXPECT_EQ(ErrnoOf(minor), ENXIO) << minor;
    for (const int minor : {0, 2, 4, 253}) EXPECT_EQ(ErrnoOf(minor), EPERM) << minor;
  }

  TempFolder folder_;
  std::optional<Cgroup> group_;
};

TEST_F(GpuGroupTest, OpensItsOwnGpusAndWhatAllShareAndNoOthers) {
  Check(0);
}

TEST_F(GpuGroupTest, DoesSoWhereItHasAMemoryLimitToo) {
  Check(64 << 20);
}

TEST_F(GpuGroupTest, WithoutAnyItOpensNone) {
  EXPECT_EQ(GpuProgram({}).size(), 11u);
  EXPECT_EQ(GpuProgram({1, 3}).size(), 13u);
}

}  // namespace
}  // namespace overcap
