// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/lock_conformance.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <unistd.h>
#include <vector>

namespace overcap {

constexpr int64_t kLong = 120'000'000;
constexpr const char* kName = "locks/train";

namespace {

void Sleep(int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

}  // namespace

LockConformance::Person::Person(std::shared_ptr<Store> way, int64_t lease_us)
    : store(std::move(way)), lock(*store, kName, clock), own(OwnLockRecord(lease_us, clock.WallUs())) {}

bool LockConformance::Person::Take() {
  const auto take = lock.Take(own);
  EXPECT_TRUE(take) << take.error().message;
  return take && take->taken;
}

void LockConformance::SetUp() {
  std::string why;
  store_ = GetParam().make(&why);
  if (!store_) GTEST_SKIP() << "NOT TESTED: " << why;
}

std::unique_ptr<LockConformance::Person> LockConformance::Another(int64_t lease_us) {
  return std::make_unique<Person>(GetParam().again(*store_), lease_us);
}

void LockConformance::TakeInTime(Person* person) {
  const int64_t end = person->clock.MonotonicUs() + kLong;
  while (!person->Take()) {
    ASSERT_LT(person->clock.MonotonicUs(), end);
    Sleep(5000);
  }
}

namespace {

TEST_P(LockConformance, IsHeldByOneWhoSaysWho) {
  const auto ann = Another(kLongestLeaseUs), bob = Another(kLongestLeaseUs);
  EXPECT_FALSE(bob->lock.Look()->has_value());
  ASSERT_TRUE(ann->Take());
  const auto take = bob->lock.Take(bob->own);
  ASSERT_TRUE(take) << take.error().message;
  EXPECT_FALSE(take->taken);
  EXPECT_EQ(take->holder.pid, getpid());
  const auto seen = bob->lock.Look();
  ASSERT_TRUE(seen && seen->has_value());
  EXPECT_EQ((*seen)->turn, ann->lock.Turn());
  NumberedLock other(*bob->store, "locks/other", bob->clock);
  EXPECT_TRUE(other.Take(bob->own)->taken);
  ASSERT_TRUE(ann->lock.Renew());
  EXPECT_FALSE(bob->Take());
  ASSERT_TRUE(ann->lock.Release());
  EXPECT_FALSE(bob->lock.Look()->has_value());
  ASSERT_TRUE(bob->Take());
  EXPECT_GT(bob->lock.Turn(), ann->lock.Turn());
}

TEST_P(LockConformance, OfOneWhoDiedIsTakenAfterItsLeaseAndNotBefore) {
  const auto dead = Another(), next = Another();
  ASSERT_TRUE(dead->Take());
  TakeInTime(next.get());
  EXPECT_GE(next->clock.MonotonicUs() - dead->lock.SentUs(), lease_us());
  EXPECT_GT(next->lock.Turn(), dead->lock.Turn());
  // It was only stopped, and comes back.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(dead->lock.Renew().error().code, ErrorCode::kConflict);
    EXPECT_EQ(dead->lock.Release().error().code, ErrorCode::kConflict);
  }
  const auto released = next->lock.Release();
  EXPECT_TRUE(released) << released.error().message;
}

TEST_P(LockConformance, LetsInOneOfManyEachTime) {
  constexpr int kThreads = 4, kRounds = 12;
  std::atomic<int> inside{0}, entries{0}, crowds{0};
  std::atomic<int64_t> last_turn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, way = GetParam().again(*store_)] {
      for (int round = 0; round < kRounds; ++round) {
        const auto person =
            std::make_unique<Person>(way, kLongestLeaseUs);  // a lease that no slow machine exceeds
        ASSERT_NO_FATAL_FAILURE(TakeInTime(person.get()));
        if (++inside != 1) ++crowds;
        if (last_turn.exchange(person->lock.Turn()) >= person->lock.Turn()) ++crowds;
        Sleep(1000);
        --inside;
        ++entries;
        const auto released = person->lock.Release();
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
  constexpr int kThreads = 4, kRounds = 2;
  for (int round = 0; round < kRounds; ++round) {
    const auto dead = Another();
    ASSERT_NO_FATAL_FAILURE(TakeInTime(dead.get()));  // follows the winner of the round before
    std::atomic<int> winners{0};
    std::barrier all_saw_it(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, person = std::shared_ptr<Person>(Another())] {
        EXPECT_FALSE(person->Take());
        all_saw_it.arrive_and_wait();
        Sleep(lease_us() * 11 / 10);
        if (person->Take()) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
  }
}

}  // namespace
}  // namespace overcap
