// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/pipe_stores.h"

#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "control/transfer/transfer.h"
#include "stores/mem/mem_store.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

std::string Noise(size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t state = 88172645463325252ULL;
  for (char& c : text) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state);
  }
  return text;
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    out = Fd(ends[0]), in = Fd(ends[1]);
  }
  Fd out, in;
};

std::string ReadToEnd(int fd) {
  std::string all, buffer(1 << 16, '\0');
  for (ssize_t got; (got = read(fd, buffer.data(), buffer.size())) > 0;)
    all.append(buffer.data(), static_cast<size_t>(got));
  return all;
}

TEST(OutputStoreTest, ManyThreadsWriteInOrder) {
  const std::string content = Noise(30 << 20);
  MemStore from;
  ASSERT_TRUE(from.Put("large", content));
  Pipe pipe;
  std::string read;
  std::thread reader([&] { read = ReadToEnd(pipe.out.Get()); });
  OutputStore output(pipe.in.Get());
  TransferOptions options;
  const auto report = TransferOne(from, "large", output, "-", options);
  pipe.in.Reset();
  reader.join();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->copied, 1);
  EXPECT_TRUE(read == content);
}

// Gives up at one of its ranges.
class BrokenStore : public MemStore {
 public:
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override {
    if (offset > 0 && offset < 9 << 20) return Fail(ErrorCode::kUnavailable, "gone");
    return MemStore::GetIntoIf(object, offset, limit, out);
  }
};

TEST(OutputStoreTest, NobodyWaitsForAPartThatDoesNotCome) {
  BrokenStore from;
  ASSERT_TRUE(from.Put("large", Noise(30 << 20)));
  Pipe pipe;
  std::thread reader([&] { ReadToEnd(pipe.out.Get()); });
  OutputStore output(pipe.in.Get());
  const auto report = TransferOne(from, "large", output, "-", {});
  pipe.in.Reset();
  reader.join();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->copied, 0);
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->problems[0].error.message, "gone");
}

TEST(InputStoreTest, HoldsWhatCameAndKnowsItAgain) {
  const TempFolder folder;
  const std::string content = Noise((20 << 20) + 7);
  std::string versions[2];
  for (std::string& version : versions) {
    Pipe pipe;
    std::thread writer([&] {
      EXPECT_EQ(WriteAll(pipe.in.Get(), content), 0);
      pipe.in.Reset();
    });
    int64_t told = 0;
    const auto input =
        InputStore::ReadAll(pipe.out.Get(), folder.Path(), [&](int64_t bytes) { told = bytes; });
    writer.join();
    ASSERT_TRUE(input);
    EXPECT_EQ(told, static_cast<int64_t>(content.size()));
    MemStore to;
    ASSERT_TRUE(TransferOne(**input, "-", to, "a/b", {}));
    EXPECT_TRUE(*to.Get("a/b") == content);
    version = (*input)->Stat("-")->version;
  }
  EXPECT_EQ(versions[0], versions[1]);
  EXPECT_EQ(versions[0].size(), 64u);
}

TEST(InputStoreTest, NothingIsAnObjectToo) {
  const TempFolder folder;
  Pipe pipe;
  pipe.in.Reset();
  const auto input = InputStore::ReadAll(pipe.out.Get(), folder.Path(), [](int64_t) {});
  ASSERT_TRUE(input);
  MemStore to;
  ASSERT_TRUE(TransferOne(**input, "-", to, "empty", {}));
  EXPECT_EQ(*to.Get("empty"), "");
}

TEST(InputStoreTest, AFolderThatTakesNothingIsNamed) {
  Pipe pipe;
  const auto input = InputStore::ReadAll(pipe.out.Get(), "/proc/nowhere", [](int64_t) {});
  ASSERT_FALSE(input);
  EXPECT_NE(input.error().message.find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace overcap
