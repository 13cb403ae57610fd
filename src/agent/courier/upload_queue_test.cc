// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/upload_queue.h"

#include <atomic>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <thread>

#include "agent/courier/leftovers.h"
#include "agent/slot_claim.h"
#include "base/text.h"
#include "stores/mem/mem_store.h"
#include "stores/stored_log_reader.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

class UploadQueueTest : public testing::Test {
 protected:
  UploadQueue::Options Options() {
    UploadQueue::Options options;
    options.tick_us = 1000;
    options.open = [this]() -> Result<std::unique_ptr<Store>> {
      if (away_) return Fail(ErrorCode::kUnavailable, "the store is away");
      return std::unique_ptr<Store>(std::make_unique<MemStore>("", content_));
    };
    return options;
  }
  std::unique_ptr<SegmentUpload> Upload(const std::string& name, SegmentUpload::Options options = {}) {
    return std::make_unique<SegmentUpload>(Path(name), name, options);
  }
  std::string Path(const std::string& name) { return StrCat(folder_.Path(), "/", name); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::app | std::ios::binary) << text;
  }
  std::string Stored(const std::string& name) {
    const MemStore store("", content_);
    StoredLogReader reader(store, name);
    std::string all;
    for (std::string some; !(some = *reader.Read(1 << 20)).empty();) all += some;
    return all;
  }

  TempFolder folder_;
  std::shared_ptr<MemStore::Content> content_ = std::make_shared<MemStore::Content>();
  std::atomic<bool> away_ = false;
};

TEST_F(UploadQueueTest, WhatIsThereBeforeADrainIsInTheStoreAfterIt) {
  UploadQueue queue(Options());
  for (int i = 0; i < 30; ++i) queue.Add(StrCat("f", i), Upload(StrCat("f", i)));
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 30; ++i) Write(StrCat("f", i), StrCat("round ", round, "\n"));
    const auto rest = queue.Drain(60 * kSecond);
    EXPECT_EQ(rest.unsent, 0);
    EXPECT_EQ(Stored("f29"), Stored("f0"));
    EXPECT_TRUE(Stored("f29").ends_with(StrCat("round ", round, "\n")));
  }
}

TEST_F(UploadQueueTest, AStoreThatIsAwayIsToldAndCaughtUpWith) {
  away_ = true;
  UploadQueue queue(Options());
  queue.Add("f", Upload("f"));
  Write("f", "written meanwhile\n");
  const auto rest = queue.Drain(kSecond / 20);
  EXPECT_EQ(rest.unsent, 18);
  EXPECT_EQ(rest.why, "the store is away");
  away_ = false;
  EXPECT_EQ(queue.Drain(60 * kSecond).unsent, 0);
  EXPECT_EQ(Stored("f"), "written meanwhile\n");
}

TEST_F(UploadQueueTest, WhatWasWrittenWhileTheStoreDoesNotAnswerIsCounted) {
  std::promise<void> answers;
  std::atomic<bool> asked = false;
  auto options = Options();
  options.beside = [&](Store*) {
    if (!asked.exchange(true)) answers.get_future().wait();
  };
  UploadQueue queue(std::move(options));
  queue.Add("a", Upload("a"));
  while (!asked) std::this_thread::yield();
  Write("a", "twelve bytes");
  const auto rest = queue.Drain(1000);
  EXPECT_EQ(rest.unsent, 12);
  EXPECT_EQ(rest.why, "the store does not answer");
  answers.set_value();
  EXPECT_EQ(queue.Drain(60 * kSecond).unsent, 0);
}

TEST_F(UploadQueueTest, TheBacklogIsBounded) {
  away_ = true;
  UploadQueue::Options options = Options();
  options.backlog = 1 << 20;
  UploadQueue queue(options);
  Write("f", std::string(3 << 20, 'x'));
  queue.Add("f", Upload("f", {.free = true}));
  EXPECT_LE(queue.Drain(kSecond / 5).unsent, 1 << 20);
  away_ = false;
  EXPECT_EQ(queue.Drain(60 * kSecond).unsent, 0);
  EXPECT_TRUE(Stored("f").find("dropped on the node") != std::string::npos || Stored("f").size() <= 1 << 20);
}

TEST_F(UploadQueueTest, LeftoversAreThoseOfAgentsThatAreGone) {
  PosixFiles files;
  const std::string job = Path("jobs/u_1_a");
  ASSERT_TRUE(files.MakeFolders(job + "/attempt-1"));
  ASSERT_TRUE(files.MakeFolders(job + "/attempt-2"));
  ASSERT_TRUE(files.MakeFolders(job + "/attempt-3"));
  Claim gone = OwnClaim();
  gone.start_ticks += 1;
  ASSERT_TRUE(files.CreateExclusive(job + "/attempt-1/agent-0.claim", ClaimToJson(gone)));
  ASSERT_TRUE(files.CreateExclusive(job + "/attempt-1/rank-0.log", "x"));
  ASSERT_TRUE(files.CreateExclusive(job + "/attempt-2/agent-0.claim", ClaimToJson(OwnClaim())));
  const auto found = FindLeftovers(job);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].names, std::vector<std::string>{"attempt-1/rank-0.log"});
  NoteStore(job, "here");
  EXPECT_EQ(FindLeftoversBeside(Path("jobs/other"), "here").size(), 1u);
  EXPECT_EQ(FindLeftoversBeside(Path("jobs/other"), "elsewhere").size(), 0u);
  MarkSent(job + "/attempt-1");
  EXPECT_EQ(FindLeftovers(job).size(), 0u);
  RemoveSent(found[0]);
  EXPECT_FALSE(files.Exists(job + "/attempt-1"));
  EXPECT_TRUE(files.Exists(job + "/attempt-2"));
}

}  // namespace
}  // namespace overcap
