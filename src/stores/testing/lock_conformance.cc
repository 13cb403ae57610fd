// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/lock_conformance.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/text.h"

namespace overcap {

constexpr int64_t kLong = 120'000'000;
constexpr const char* kName = "locks/train";

void LockConformance::SetUp() {
  std::string why;
  store_ = GetParam().make(&why);
  if (!store_) GTEST_SKIP() << "NOT TESTED: " << why;
}

LockRecord LockConformance::Own() const {
  return OwnLockRecord(lease_us(), PosixClock().WallUs());
}

LockOptions LockConformance::Options(int64_t wait_us) const {
  LockOptions options;
  options.lease_us = lease_us();
  options.wait_us = wait_us;
  options.poll_us = lease_us() / 30;
  return options;
}

std::unique_ptr<LockPlace> LockConformance::TakeAndDie(Store& store) {
  auto place = store.LockAt(kName);
  EXPECT_TRUE(place);
  const auto take = (*place)->Take(Own());
  EXPECT_TRUE(take) << take.error().message;
  EXPECT_TRUE(take && take->taken);
  return std::move(*place);
}

namespace {

int64_t Now() {
  return LockPlace::OwnClock().MonotonicUs();
}

void Sleep(int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

TEST_P(LockConformance, IsHeldByOneWhoSaysWho) {
  auto first = StoreLock::Acquire(store_, kName, Options());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE((*first)->Held());
  EXPECT_EQ((*first)->WhyLost(), "");
  const auto second = StoreLock::Acquire(Again(), kName, Options());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find(StrCat(", pid ", getpid(), ", since ")), std::string::npos)
      << second.error().message;
  const auto other = StoreLock::Acquire(Again(), "locks/other", Options());
  EXPECT_TRUE(other) << other.error().message;
  const int64_t turn = (*first)->turn();
  const auto released = (*first)->Release();
  EXPECT_TRUE(released) << released.error().message;
  EXPECT_FALSE((*first)->Held());
  const auto third = StoreLock::Acquire(Again(), kName, Options());
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_GT((*third)->turn(), turn);
}

TEST_P(LockConformance, LooksWithoutTakingIt) {
  const auto watcher = Again();
  auto looks = watcher->LockAt(kName);
  ASSERT_TRUE(looks);
  auto none = (*looks)->Look();
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->has_value());
  {
    const auto lock = StoreLock::Acquire(store_, kName, Options());
    ASSERT_TRUE(lock);
    const auto held = (*looks)->Look();
    ASSERT_TRUE(held) << held.error().message;
    ASSERT_TRUE(held->has_value());
    EXPECT_EQ((*held)->pid, getpid());
    EXPECT_EQ((*held)->turn, (*lock)->turn());
  }
  none = (*looks)->Look();
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST_P(LockConformance, IsRenewedForAsLongAsItIsWanted) {
  const auto lock = StoreLock::Acquire(store_, kName, Options());
  ASSERT_TRUE(lock) << lock.error().message;
  const auto other = StoreLock::Acquire(Again(), kName, Options(lease_us() * 3 / 2));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConflict) << other.error().message;
  EXPECT_TRUE((*lock)->Held()) << (*lock)->WhyLost();
  const auto released = (*lock)->Release();
  EXPECT_TRUE(released) << released.error().message;
}

TEST_P(LockConformance, OfOneWhoDiedIsTakenAfterItsLeaseAndNotBefore) {
  const auto dead = TakeAndDie(*store_);
  const auto next = StoreLock::Acquire(Again(), kName, Options(kLong));
  ASSERT_TRUE(next) << next.error().message;
  // Somebody who believed until two thirds of it would have stopped long ago. (Azurite counts whole seconds.)
  EXPECT_GE(Now() - dead->SentUs(), lease_us() - (lease_us() >= kShortestLeaseUs ? 1'000'000 : 0));
  EXPECT_GT((*next)->turn(), dead->Turn());
  // It was only stopped, and comes back.
  for (int i = 0; i < 2; ++i) {
    const auto renewed = dead->Renew();
    ASSERT_FALSE(renewed);
    EXPECT_EQ(renewed.error().code, ErrorCode::kConflict) << renewed.error().message;
    const auto released = dead->Release();
    ASSERT_FALSE(released);
    EXPECT_EQ(released.error().code, ErrorCode::kConflict) << released.error().message;
  }
  EXPECT_TRUE((*next)->Held());
  EXPECT_FALSE(StoreLock::Acquire(Again(), kName, Options()));
  const auto released = (*next)->Release();
  EXPECT_TRUE(released) << released.error().message;
}

TEST_P(LockConformance, LetsInOneOfManyEachTime) {
  constexpr int kThreads = 4, kRounds = 12;
  std::atomic<int> inside{0}, entries{0}, crowds{0};
  std::atomic<int64_t> last_turn{0};
  std::vector<std::shared_ptr<Store>> stores;
  for (int i = 0; i < kThreads; ++i) stores.push_back(Again());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      LockOptions options = Options(kLong);
      options.poll_us = 5'000;
      for (int round = 0; round < kRounds; ++round) {
        const auto lock = StoreLock::Acquire(stores[static_cast<size_t>(i)], kName, options);
        ASSERT_TRUE(lock) << lock.error().message;
        if (++inside != 1 || !(*lock)->Held()) ++crowds;
        if (last_turn.exchange((*lock)->turn()) >= (*lock)->turn()) ++crowds;
        Sleep(1000);
        --inside;
        ++entries;
        const auto released = (*lock)->Release();
        EXPECT_TRUE(released) << released.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(crowds, 0);
  EXPECT_EQ(entries, kThreads * kRounds);
}

// All of them see at the same time that it may be taken.
TEST_P(LockConformance, OneFollowsADeadHolder) {
  constexpr int kThreads = 4;
  const int rounds = lease_us() > 1'000'000 ? 2 : 5;
  for (int round = 0; round < rounds; ++round) {
    const auto dead = TakeAndDie(*store_);
    std::atomic<int> winners{0};
    std::barrier all_saw_it(kThreads);
    std::vector<std::thread> threads;
    std::vector<std::shared_ptr<Store>> stores;
    for (int i = 0; i < kThreads; ++i) stores.push_back(Again());
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        auto place = stores[static_cast<size_t>(i)]->LockAt(kName);
        const LockRecord own = Own();
        (void)(*place)->Take(own);  // sees the dead one
        all_saw_it.arrive_and_wait();
        const int64_t slack = lease_us() >= kShortestLeaseUs ? 1'100'000 : lease_us() / 10;
        Sleep(lease_us() + slack);
        const auto take = (*place)->Take(own);
        ASSERT_TRUE(take) << take.error().message;
        if (take->taken) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_FALSE(StoreLock::Acquire(Again(), kName, Options()));
    // The winner of this round is dead in the next.
    const auto next = StoreLock::Acquire(Again(), kName, Options(kLong));
    ASSERT_TRUE(next) << next.error().message;
    ASSERT_TRUE((*next)->Release());
  }
}

}  // namespace
}  // namespace overcap
