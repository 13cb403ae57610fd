// SPDX-License-Identifier: Apache-2.0
#include "stores/file/direct_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include "sys/fd.h"

namespace overcap {
namespace {

// A file without a name below `folder`; invalid where there is no such folder.
Fd Nameless(const char* folder) {
  return Fd(open(folder, O_TMPFILE | O_RDWR, 0600));
}

std::string Contents(int fd) {
  std::string bytes(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  return bytes;
}

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = size + 1;
  for (char& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

// Cut into pieces of growing and odd sizes, empty ones among them.
std::vector<std::string_view> Cut(std::string_view bytes) {
  std::vector<std::string_view> pieces;
  for (size_t size = 0; !bytes.empty(); size = size * 3 + 1) {
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(pieces.back().size());
  }
  return pieces;
}

class DirectWrite : public testing::TestWithParam<const char*> {};

TEST_P(DirectWrite, WhatWasWrittenIsThereToTheByteWhateverTheSize) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4096}, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1,
        size_t{2} << 20, (size_t{4} << 20) + 4095, size_t{6} << 20}) {
    const Fd file = Nameless(GetParam());
    if (!file) GTEST_SKIP() << "NOT TESTED: no file can be made in " << GetParam();
    const std::string bytes = Pattern(size);
    ASSERT_EQ(WriteAll(file.Get(), Cut(bytes)), 0) << size;
    EXPECT_TRUE(Contents(file.Get()) == bytes) << size;
    EXPECT_EQ(fcntl(file.Get(), F_GETFL) & O_DIRECT, 0);
  }
}

// tmpfs knows no direct writes in older kernels, disks do.
INSTANTIATE_TEST_SUITE_P(Folders, DirectWrite, testing::Values("/tmp", "/var/tmp", "/dev/shm"));

TEST(DirectWriteErrors, AFileThatIsNotOpenForWritingIsAnError) {
  const Fd file(open("/proc/self/exe", O_RDONLY));
  EXPECT_EQ(WriteAll(file.Get(), std::vector<std::string_view>{"x"}), EBADF);
  const std::string large(size_t{2} << 20, 'x');
  EXPECT_EQ(WriteAll(file.Get(), std::vector<std::string_view>{large}), EBADF);
}

}  // namespace
}  // namespace overcap
