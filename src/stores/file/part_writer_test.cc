// SPDX-License-Identifier: Apache-2.0
#include "stores/file/part_writer.h"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"
#include "stores/testing/quick_folder.h"
#include "sys/random.h"

namespace overcap {
namespace {

std::string Content(size_t size) {
  std::string bytes(size, 'x');
  SeededRandom random(3);
  for (size_t i = 0; i < size; i += 61) bytes[i] = static_cast<char>(random.Next());
  return bytes;
}

// In a folder of the build tree, which is on a disk, and in one that may be memory. Programs of several
// builds run at once.
class PartWriterTest : public testing::TestWithParam<bool> {
 protected:
  PartWriterTest() : path_(GetParam() ? StrCat("part_writer_test-", getpid(), ".tmp") : folder_ / "file") {
    fd_ = Fd(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    writer_.Begin(fd_.Get(), AT_FDCWD, path_);
  }
  ~PartWriterTest() override { unlink(path_.c_str()); }
  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const QuickFolder folder_;
  const std::string path_;
  Fd fd_;
  PartWriter writer_;
};

TEST_P(PartWriterTest, PartsStandWhereTheyBelong) {
  constexpr size_t kPart = (3 << 20) + 4096;
  const std::string content = Content(5 * kPart - 1234);
  std::vector<std::thread> threads;
  for (size_t part = 0; part < 5; ++part)
    threads.emplace_back([&, part] {
      const std::string_view bytes = std::string_view(content).substr(part * kPart, kPart);
      EXPECT_EQ(writer_.Write(static_cast<int64_t>(part * kPart), bytes), 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Read() == content);
}

TEST_P(PartWriterTest, OddPlacesAndSizesToo) {
  const std::string content = Content((4 << 20) + 17);
  EXPECT_EQ(writer_.Write(1'000'001, std::string_view(content).substr(1'000'001)), 0);
  EXPECT_EQ(writer_.Write(0, std::string_view(content).substr(0, 1'000'001)), 0);
  EXPECT_TRUE(Read() == content);
}

TEST_P(PartWriterTest, SaysWhatIsWrong) {
  PartWriter closed;
  closed.Begin(-1, AT_FDCWD, path_);
  EXPECT_EQ(closed.Write(0, "x"), EBADF);
}

INSTANTIATE_TEST_SUITE_P(OnDiskAndInMemory, PartWriterTest, testing::Bool());

}  // namespace
}  // namespace overcap
