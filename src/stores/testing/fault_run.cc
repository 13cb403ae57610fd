// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/fault_run.h"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int kThreads = 8, kSteps = 125, kLargeEvery = 40;

// What one thread does, on keys of its own, and what it then expects to be there.
class FaultWorker {
 public:
  FaultWorker(Store& store, int number, uint64_t seed, int64_t large_size)
      : store_(store),
        number_(number),
        random_(seed + static_cast<uint64_t>(number)),
        large_size_(large_size) {}

  void Run() {
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      if (step % kLargeEvery == kLargeEvery / 2) {
        Upload();
      } else {
        Step();
      }
    }
  }
  const std::map<std::string, std::string>& expected() const { return expected_; }

 private:
  std::string Key() { return StrCat("w", number_, "/k", random_.Below(12)); }
  std::string Content() {
    std::string bytes(random_.Below(10) == 0 ? 200'000 : random_.Below(9000), '\0');
    for (size_t i = 0; i < bytes.size(); i += 64) bytes[i] = static_cast<char>(random_.Next());
    return bytes;
  }
  void Expect(const Result<void>& result, const char* what, const std::string& key) {
    EXPECT_TRUE(result) << what << " " << key << ": " << result.error().message;
  }

  void Step() {
    const std::string key = Key();
    switch (random_.Below(10)) {
      case 0:
      case 1:
        return Create(key);
      case 2:
        Expect(store_.Remove(key), "remove", key);
        expected_.erase(key);
        return;
      case 3:
      case 4:
      case 5:
        return Read(key);
      case 6:
        return Copy(key, Key());
      default:
        return Replace(key, Content());
    }
  }

  void Replace(const std::string& key, const std::string& bytes) {
    Expect(store_.Put(key, bytes), "put", key);
    expected_[key] = bytes;
  }

  void Create(const std::string& key) {
    const std::string bytes = Content();
    const Result<void> put = store_.Put(key, bytes, PutMode::kCreate);
    if (expected_.count(key) > 0) {
      EXPECT_TRUE(!put && put.error().code == ErrorCode::kConflict) << "create " << key;
    } else {
      Expect(put, "create", key);
      expected_[key] = bytes;
    }
  }

  void Read(const std::string& key) {
    const Result<std::string> got = store_.Get(key);
    const auto wanted = expected_.find(key);
    if (wanted == expected_.end()) {
      EXPECT_TRUE(!got && got.error().code == ErrorCode::kNotFound) << "get " << key;
    } else {
      EXPECT_TRUE(got && *got == wanted->second) << "get " << key << (got ? "" : ": " + got.error().message);
    }
  }

  void Copy(const std::string& from, const std::string& to) {
    if (expected_.count(from) == 0) return;
    const Result<std::string> got = store_.Get(from);
    ASSERT_TRUE(got) << "copy " << from << ": " << got.error().message;
    Replace(to, *got);
  }

  void Upload() {
    const std::string key = Key();
    std::string bytes(static_cast<size_t>(large_size_), static_cast<char>('a' + number_));
    for (size_t i = 0; i < bytes.size(); i += 997) bytes[i] = static_cast<char>(random_.Next());
    const Result<std::unique_ptr<StoreUpload>> upload =
        store_.StartUpload(key, large_size_, PutMode::kReplace);
    ASSERT_TRUE(upload) << "upload " << key << ": " << upload.error().message;
    const int64_t part = (*upload)->PartSize();
    for (int64_t i = 0; i < PartCount(large_size_, part); ++i) {
      const std::string_view piece =
          std::string_view(bytes).substr(static_cast<size_t>(i * part), static_cast<size_t>(part));
      Expect((*upload)->Part(i, piece), "part of", key);
    }
    if (random_.Below(3) == 0) return;  // given up: nothing may stay of it
    Expect((*upload)->Finish(), "finish", key);
    expected_[key] = bytes;
  }

  Store& store_;
  const int number_;
  SeededRandom random_;
  const int64_t large_size_;
  std::map<std::string, std::string> expected_;
};

}  // namespace

void RunThroughFaults(Store& faulty, Store& direct, uint64_t seed, int64_t large_size) {
  std::vector<FaultWorker> workers;
  for (int i = 0; i < kThreads; ++i) workers.emplace_back(faulty, i, seed, large_size);
  std::vector<std::thread> threads;
  for (FaultWorker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, std::string> expected;
  for (const FaultWorker& worker : workers)
    expected.insert(worker.expected().begin(), worker.expected().end());
  const Result<std::vector<StoredObjectInfo>> all = direct.ListAll("");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->size(), expected.size());
  for (const StoredObjectInfo& object : *all) {
    const auto wanted = expected.find(object.key);
    ASSERT_NE(wanted, expected.end()) << object.key << " should not be there";
    const Result<std::string> got = direct.Get(object.key);
    EXPECT_TRUE(got && *got == wanted->second) << object.key << " is not what was written";
  }
}

}  // namespace overcap
