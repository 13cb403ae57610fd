// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/fault_store.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/store_conformance.h"

namespace overcap {
namespace {

std::shared_ptr<Store> MakeFaultless(std::string*) {
  return std::make_shared<FaultStore>(std::make_shared<MemStore>());
}

std::shared_ptr<Store> TheSame(Store& same) {
  return std::shared_ptr<Store>(std::shared_ptr<Store>(), &same);
}

// Without faults nobody can tell it from the store behind it.
INSTANTIATE_TEST_SUITE_P(Fault, StoreConformance,
                         testing::Values(StoreMaker{"fault", MakeFaultless, TheSame}), ConformingStoreName);

class FaultStoreTest : public testing::Test {
 protected:
  std::string Code(const Result<void>& result) {
    return result ? "ok" : std::string(ErrorCodeName(result.error().code));
  }
  std::string Get(const std::string& key) {
    const Result<std::string> bytes = store_.Get(key);
    return bytes ? *bytes : StrCat("error: ", ErrorCodeName(bytes.error().code));
  }

  std::shared_ptr<MemStore> disk_ = std::make_shared<MemStore>();
  FaultStore store_{disk_};
};

TEST_F(FaultStoreTest, CountsChangesThatTookEffect) {
  ASSERT_TRUE(store_.Put("a", "1"));
  ASSERT_FALSE(store_.Put("a", "1", PutMode::kCreate));
  ASSERT_TRUE(store_.Get("a"));
  ASSERT_TRUE(store_.Remove("a"));
  EXPECT_EQ(store_.History(), (std::vector<std::string>{"put a", "remove a"}));
  EXPECT_EQ(store_.changes(), 2);
  EXPECT_EQ(store_.CallsOf(StoreOp::kPut), 2);
  EXPECT_EQ(store_.CallsOf(StoreOp::kGet), 1);
}

TEST_F(FaultStoreTest, DeathBeforeAChangeLeavesAllAsItWas) {
  ASSERT_TRUE(store_.Put("a", "1"));
  store_.DieAt(2, StoreDeath::kBefore);
  ASSERT_TRUE(store_.Put("b", "1"));
  EXPECT_FALSE(store_.dead());
  EXPECT_EQ(Code(store_.Put("a", "2")), "internal");
  EXPECT_TRUE(store_.dead());
  EXPECT_EQ(*disk_->Get("a"), "1");
}

TEST_F(FaultStoreTest, DeathAfterAChangeKeepsIt) {
  store_.DieAt(1, StoreDeath::kAfter);
  EXPECT_EQ(Code(store_.Put("a", "2")), "internal");
  EXPECT_TRUE(store_.dead());
  EXPECT_EQ(*disk_->Get("a"), "2");
  EXPECT_EQ(store_.History(), std::vector<std::string>{"put a"});
}

TEST_F(FaultStoreTest, TheDeadDoNothing) {
  ASSERT_TRUE(disk_->Put("a", "1"));
  store_.DieAt(1, StoreDeath::kBefore);
  ASSERT_FALSE(store_.Remove("a"));
  EXPECT_FALSE(store_.Remove("a"));
  EXPECT_FALSE(store_.Put("b", "1"));
  EXPECT_FALSE(store_.Get("a"));
  EXPECT_FALSE(store_.Stat("a"));
  EXPECT_FALSE(store_.List("", ""));
  EXPECT_FALSE(store_.CleanUp(0));
  EXPECT_EQ(disk_->ListAll("")->size(), 1u);
  EXPECT_EQ(store_.changes(), 0);
  store_.Revive();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_TRUE(store_.Put("b", "1"));
}

TEST_F(FaultStoreTest, AFullStoreStillReadsAndRemoves) {
  ASSERT_TRUE(store_.Put("a", "1"));
  StoreFault full = StoreFault::Full();
  full.skip = 1;
  store_.Add(full);
  EXPECT_EQ(Code(store_.Put("b", "1")), "ok");
  EXPECT_EQ(Code(store_.Put("c", "1")), "unavailable");
  EXPECT_EQ(Code(store_.Put("d", "1")), "unavailable");
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Code(store_.Remove("a")), "ok");
  store_.ClearFaults();
  EXPECT_EQ(Code(store_.Put("c", "1")), "ok");
}

TEST_F(FaultStoreTest, FaultsEndAfterTheirTimes) {
  StoreFault twice = StoreFault::Denied();
  twice.times = 2;
  twice.prefix = "x/";
  store_.Add(twice);
  EXPECT_EQ(Code(store_.Put("y/a", "1")), "ok");
  EXPECT_EQ(Code(store_.Put("x/a", "1")), "denied");
  EXPECT_EQ(Code(store_.Remove("x/a")), "denied");
  EXPECT_EQ(Code(store_.Put("x/a", "1")), "ok");
}

TEST_F(FaultStoreTest, ALostAnswerIsAnErrorOfSomethingThatWasDone) {
  StoreFault lost = StoreFault::Full();
  lost.took_effect = true;
  store_.Add(lost);
  EXPECT_EQ(Code(store_.Put("a", "1")), "unavailable");
  EXPECT_EQ(*disk_->Get("a"), "1");
  EXPECT_EQ(store_.changes(), 1);
}

TEST_F(FaultStoreTest, FlipsBitsOfWhatIsReadOrStored) {
  ASSERT_TRUE(store_.Put("a", "aaaa"));
  StoreFault flip;
  flip.ops = {StoreOp::kGet};
  flip.flip_bit = 9;
  flip.times = 1;
  store_.Add(flip);
  EXPECT_EQ(Get("a"), "acaa");
  EXPECT_EQ(Get("a"), "aaaa");
  ASSERT_TRUE(store_.FlipStoredBit("a", 1));
  EXPECT_EQ(Get("a"), "caaa");
}

TEST_F(FaultStoreTest, LosesObjects) {
  ASSERT_TRUE(store_.Put("a/1", "1"));
  ASSERT_TRUE(store_.Put("b", "1"));
  store_.Add(StoreFault::Lost("a/"));
  EXPECT_EQ(Get("a/1"), "error: not_found");
  EXPECT_EQ(store_.ListAll("")->size(), 2u);
  ASSERT_TRUE(store_.Lose("b"));
  EXPECT_EQ(store_.ListAll("")->size(), 1u);
}

TEST_F(FaultStoreTest, OthersMayActInBetween) {
  ASSERT_TRUE(store_.Put("a", "1"));
  store_.OnCall([&](const StoreCall& call) {
    if (call.Text() == "get a") (void)disk_->Put("a", "2");
  });
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(FaultStoreTest, Waits) {
  StoreFault slow;
  slow.delay_us = 2000;
  store_.Add(slow);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Code(store_.Put("a", "1")), "ok");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(2000));
}

}  // namespace
}  // namespace overcap
