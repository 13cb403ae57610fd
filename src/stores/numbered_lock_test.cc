// SPDX-License-Identifier: Apache-2.0
#include "stores/numbered_lock.h"

#include <deque>
#include <functional>
#include <gtest/gtest.h>

#include "base/testing/one_thread.h"
#include "base/text.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kLease = 30'000'000;

LockRecord NewOwn() {
  return OwnLockRecord(kLease, 1'800'000'000'000'000);
}

StoreFault AnswerLost(StoreOp op) {
  StoreFault fault;
  fault.ops = {op};
  fault.times = 1;
  fault.error = Error{ErrorCode::kUnavailable, "the answer was lost", ""};
  fault.took_effect = true;
  return fault;
}

class NumberedLockTest : public testing::Test {
 protected:
  // Somebody who wants the lock, with a way to the store of his own.
  struct Person {
    explicit Person(NumberedLockTest* test)
        : store(test->disk_), place(store, "train", test->clock_), own(NewOwn()) {}
    bool Take() {
      const auto take = place.Take(own);
      EXPECT_TRUE(take) << take.error().message;
      return take && take->taken;
    }
    FaultStore store;
    NumberedLock place;
    LockRecord own;
  };
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    const auto all = disk_->ListAll("");
    for (const auto& object : *all) keys.push_back(object.key);
    return keys;
  }

  FakeClock clock_;
  std::shared_ptr<MemStore> disk_ = std::make_shared<MemStore>();
};

TEST_F(NumberedLockTest, IsFollowedWhenItsNumberDidNotRiseForALease) {
  Person ann(this), bob(this);
  ASSERT_TRUE(ann.Take());
  clock_.Advance(kLease * 10);  // nobody has looked: nothing is known
  EXPECT_FALSE(bob.Take());
  clock_.Advance(kLease - 1);
  EXPECT_FALSE(bob.Take());
  ASSERT_TRUE(ann.place.Renew());
  clock_.Advance(1);
  EXPECT_FALSE(bob.Take());
  clock_.Advance(kLease);
  EXPECT_TRUE(bob.Take());
  EXPECT_EQ(ann.place.Renew().error().code, ErrorCode::kConflict);
  EXPECT_TRUE(bob.place.Renew());
  EXPECT_EQ(Keys().back(), "train.lock/0000000000000004");
}

TEST_F(NumberedLockTest, KnowsItsOwnWhenAnswersAreLost) {
  Person ann(this), bob(this);
  ann.store.Add(AnswerLost(StoreOp::kPut));
  EXPECT_EQ(ann.place.Take(ann.own).error().code, ErrorCode::kUnavailable);
  const int64_t sent = clock_.MonotonicUs();
  clock_.Advance(5'000'000);
  EXPECT_FALSE(bob.Take());
  EXPECT_TRUE(ann.Take());
  // Others may have seen it since it was sent first.
  EXPECT_EQ(ann.place.SentUs(), sent);
  ann.store.Add(AnswerLost(StoreOp::kPut));
  const int64_t renewed = clock_.MonotonicUs();
  EXPECT_EQ(ann.place.Renew().error().code, ErrorCode::kUnavailable);
  clock_.Advance(2'000'000);
  EXPECT_TRUE(ann.place.Renew());
  EXPECT_EQ(ann.place.SentUs(), renewed);
  ann.store.Add(AnswerLost(StoreOp::kPut));
  EXPECT_EQ(ann.place.Renew().error().code, ErrorCode::kUnavailable);
  ann.store.Add(AnswerLost(StoreOp::kPut));
  EXPECT_EQ(ann.place.Release().error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(ann.place.Release());
  EXPECT_TRUE(bob.Take());
}

TEST_F(NumberedLockTest, WhoWasStoppedBeforeItsCreateDoesNotWinANumberOfLongAgo) {
  Person ann(this), bob(this);
  ASSERT_TRUE(ann.Take());
  ASSERT_TRUE(ann.place.Release());
  Person eve(this);
  bool once = false;
  bob.store.OnCall([&](const StoreCall& call) {
    if (call.op != StoreOp::kPut || std::exchange(once, true)) return;
    ASSERT_TRUE(eve.Take());
    for (int i = 0; i < 2 * NumberedLock::kKept; ++i) ASSERT_TRUE(eve.place.Renew());
  });
  EXPECT_FALSE(bob.Take());
  EXPECT_TRUE(once);
  EXPECT_TRUE(eve.place.Renew());
  EXPECT_EQ(Keys().size(), NumberedLock::kKept + 1u);
}

// A folder on NFS: what came in the same tick of the server's clock as the listing before may be left out.
class TickOldLists : public MemStore {
 public:
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    OC_TRY(page, MemStore::List(prefix, next));
    std::erase_if(page.objects, [this](const StoredObjectInfo& object) { return object.key > newest; });
    return page;
  }
  Result<void> CreateStrictly(const std::string& key, std::string_view bytes) override {
    if (const auto act = std::exchange(before_create, nullptr)) act();
    return MemStore::CreateStrictly(key, bytes);
  }
  std::function<void()> before_create;
  std::string newest = "~";
};

TEST_F(NumberedLockTest, WhoComesLateIsRefusedAlsoWhereAListingIsATickOld) {
  TickOldLists store;
  NumberedLock ann(store, "train", clock_), bob(store, "train", clock_);
  ASSERT_TRUE(ann.Take(NewOwn()));
  ASSERT_TRUE(ann.Release());
  store.before_create = [&] {
    NumberedLock eve(store, "train", clock_), pat(store, "train", clock_);
    ASSERT_TRUE(eve.Take(NewOwn())->taken);
    ASSERT_TRUE(eve.Release());
    ASSERT_TRUE(pat.Take(NewOwn())->taken);  // and has it
    store.newest = "train.lock/0000000000000003";
  };
  const auto late = bob.Take(NewOwn());
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_FALSE(late->taken);
}

TEST_F(NumberedLockTest, WhoComesVeryLateIsRefusedByTheGapBeforeIt) {
  TickOldLists store;
  NumberedLock ann(store, "train", clock_), bob(store, "train", clock_), eve(store, "train", clock_);
  ASSERT_TRUE(ann.Take(NewOwn()));
  ASSERT_TRUE(ann.Release());
  store.before_create = [&] {
    ASSERT_TRUE(eve.Take(NewOwn())->taken);
    for (int i = 0; i < 2 * NumberedLock::kKept; ++i) ASSERT_TRUE(eve.Renew());
    store.newest = "train.lock/0000000000000003";
  };
  const auto late = bob.Take(NewOwn());
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_FALSE(late->taken);
  store.newest = "~";
  EXPECT_EQ(store.Get("train.lock/0000000000000003").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(eve.Renew());
}

TEST_F(NumberedLockTest, WhatIsMadeAndNotListedYetCounts) {
  TickOldLists store;
  NumberedLock ann(store, "train", clock_), bob(store, "train", clock_);
  store.newest = "";
  ASSERT_TRUE(ann.Take(NewOwn())->taken);
  ASSERT_TRUE(ann.Renew());
  store.newest = "train.lock/0000000000000001";
  EXPECT_FALSE(bob.Take(NewOwn())->taken);
  ASSERT_TRUE(ann.Renew());
  ASSERT_TRUE(ann.Release());
  // He sees number 1 for ever, and finds out that it is not the highest.
  bool taken = false;
  for (int i = 0; i < 3 && !taken; ++i, clock_.Advance(kLease)) taken = bob.Take(NewOwn())->taken;
  EXPECT_TRUE(taken);
  EXPECT_EQ(bob.Turn(), 5);
}

TEST_F(NumberedLockTest, WhoFindsAGapBeforeItsOwnObjectStartsAnew) {
  Person ann(this), bob(this);
  ASSERT_TRUE(ann.Take());
  ASSERT_FALSE(bob.Take());
  clock_.Advance(kLease);
  StoreFault cut = AnswerLost(StoreOp::kList);
  cut.skip = 1;  // what is asked after the create
  bob.store.Add(cut);
  ASSERT_EQ(bob.place.Take(bob.own).error().code, ErrorCode::kUnavailable);
  ASSERT_EQ(Keys().size(), 2u);
  ASSERT_TRUE(disk_->Remove(Keys().front()));
  EXPECT_FALSE(bob.Take());
  EXPECT_TRUE(bob.Take());
}

// Two who were stopped wake up when others are far ahead.
TEST_F(NumberedLockTest, WhoWakesUpLateLeavesNoGapForOthers) {
  Person ann(this), bob(this), carol(this);
  bool ann_slept = false, bob_slept = false;
  ann.store.OnCall([&](const StoreCall& call) {  // after her create, before she looks
    if (call.op != StoreOp::kList || Keys().empty() || std::exchange(ann_slept, true)) return;
    ASSERT_FALSE(bob.Take());
    clock_.Advance(kLease);
    ASSERT_FALSE(bob.Take());
  });
  bob.store.OnCall([&](const StoreCall& call) {
    if (call.op != StoreOp::kList || Keys().size() < 2 || std::exchange(bob_slept, true)) return;
    ASSERT_FALSE(carol.Take());
    clock_.Advance(kLease);
    ASSERT_TRUE(carol.Take());
  });
  EXPECT_FALSE(ann.Take());
  EXPECT_TRUE(ann_slept && bob_slept);
  EXPECT_EQ(Keys().size(), 3u);
  EXPECT_TRUE(carol.place.Renew());
}

TEST_F(NumberedLockTest, AReleaseThatComesLateIsNoClaim) {
  TickOldLists store;
  const LockRecord own = NewOwn();
  NumberedLock first(store, "train", clock_), second(store, "train", clock_);
  ASSERT_TRUE(first.Take(own)->taken);
  ASSERT_FALSE(second.Take(own)->taken);
  clock_.Advance(kLease);
  store.before_create = [&] {
    LockRecord free = own;
    free.held = false;
    ASSERT_TRUE(store.Put("train.lock/0000000000000002", EncodeLockRecord(free)));
  };
  EXPECT_FALSE(second.Take(own)->taken);
}

TEST_F(NumberedLockTest, DamageIsSomebodyForAWhile) {
  Person ann(this), bob(this);
  ASSERT_TRUE(disk_->Put("train.lock/0000000000000041", "no record"));
  ASSERT_TRUE(disk_->Put("train.lock/readme", "not a number"));
  ASSERT_TRUE(disk_->Put("train.lock/000000000000004x", "neither"));
  EXPECT_FALSE(ann.Take());
  EXPECT_EQ(DescribeHolder(**ann.place.Look()), "somebody who does not say who");
  clock_.Advance(kLongestLeaseUs - 1);
  EXPECT_FALSE(ann.Take());
  clock_.Advance(1);
  EXPECT_TRUE(ann.Take());
  EXPECT_EQ(ann.place.Turn(), 42);
}

// As a service that does not know the header.
class Careless : public MemStore {
 public:
  Result<void> CreateStrictly(const std::string& key, std::string_view bytes) override {
    return Put(key, bytes);
  }
};

TEST_F(NumberedLockTest, AStoreThatCreatesTwiceIsRefused) {
  Careless store;
  NumberedLock place(store, "train", clock_);
  const auto take = place.Take(NewOwn());
  ASSERT_FALSE(take);
  EXPECT_EQ(take.error().code, ErrorCode::kUsage);
  EXPECT_NE(take.error().message.find("cannot keep locks"), std::string::npos);
}

TEST_F(NumberedLockTest, ANameThatEndsSoIsTakenAsItIs) {
  NumberedLock place(*disk_, "a.lock", clock_);
  ASSERT_TRUE(place.Take(NewOwn()));
  EXPECT_EQ(Keys(), std::vector<std::string>{"a.lock/0000000000000001"});
}

// Listings are of now or of one of the last changes.
class OldLists : public MemStore {
 public:
  explicit OldLists(uint64_t seed) : random_(seed) {}

  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override {
    Remember();
    return MemStore::Put(key, pieces, mode);
  }
  Result<void> Remove(const std::string& key) override {
    Remember();
    return MemStore::Remove(key);
  }
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    if (!before_.empty() && random_.Below(3) == 0) return before_[random_.Below(before_.size())];
    return MemStore::List(prefix, next);
  }

 private:
  void Remember() {
    if (before_.size() == 4) before_.pop_front();
    before_.push_back(*MemStore::List("", ""));
  }
  mutable SeededRandom random_;
  std::deque<StorePage> before_;
};

// Several who take, renew and let go, each stopped in the middle of any call while others act and time goes
// by, on ways that lose requests and answers: never do two believe that they hold it.
class CrowdRun {
 public:
  explicit CrowdRun(uint64_t seed) : random_(seed), disk_(std::make_shared<OldLists>(seed)) {
    for (int i = 0; i < 4; ++i) people_.push_back(std::make_unique<Person>(this));
  }

  void Run() {
    for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) Act();
  }
  int taken() const { return taken_; }
  int followed() const { return followed_; }

 private:
  struct Person {
    explicit Person(CrowdRun* run)
        : store(run->disk_), place(std::make_unique<NumberedLock>(store, "l", run->clock_)), own(NewOwn()) {
      store.OnCall([run, this](const StoreCall&) { run->Between(); });
    }
    FaultStore store;
    std::unique_ptr<NumberedLock> place;
    LockRecord own;
    bool busy = false, holds = false;
    int64_t sent_us = 0;
  };

  bool Believes(const Person& person) const {
    return person.holds && clock_.MonotonicUs() < person.sent_us + kLease * 2 / 3;
  }
  void Look() {
    int believers = 0;
    for (const auto& person : people_) believers += Believes(*person) ? 1 : 0;
    EXPECT_LE(believers, 1);
  }
  void Between() {
    if (random_.Below(3) == 0) clock_.Advance(static_cast<int64_t>(random_.Below(kLease / 20)));
    if (random_.Below(40) == 0) clock_.Advance(static_cast<int64_t>(random_.Below(kLease * 2)));
    Look();
    if (depth_ < 3 && random_.Below(4) == 0) {
      ++depth_;
      Act();
      --depth_;
    }
  }
  void Act() {
    Person& person = *people_[random_.Below(people_.size())];
    if (person.busy) return;
    person.busy = true;
    if (random_.Below(8) == 0) {
      StoreFault fault = AnswerLost(StoreOp::kPut);
      fault.ops = {};
      fault.skip = static_cast<int64_t>(random_.Below(3));
      fault.took_effect = random_.Below(2) == 0;
      person.store.Add(fault);
    }
    if (!person.holds) {
      Take(&person);
    } else if (!Believes(person)) {
      GiveUp(&person);
    } else if (random_.Below(6) == 0) {
      person.holds = false;
      (void)person.place->Release();
      StartAnew(&person);
    } else {
      const auto renewed = person.place->Renew();
      // What comes too late is none.
      person.holds = Believes(person) && (renewed || renewed.error().code != ErrorCode::kConflict);
      if (person.holds && renewed) person.sent_us = person.place->SentUs();
    }
    person.store.ClearFaults();
    person.busy = false;
    Look();
  }
  void Take(Person* person) {
    const auto take = person->place->Take(person->own);
    if (!take || !take->taken) return;
    person->holds = true;
    person->sent_us = person->place->SentUs();
    ++taken_;
    if (person->own.holder != last_holder_) ++followed_;
    last_holder_ = person->own.holder;
  }
  void GiveUp(Person* person) {
    person->holds = false;
    if (random_.Below(2) == 0) (void)person->place->Release();
    StartAnew(person);
  }
  void StartAnew(Person* person) {
    person->place = std::make_unique<NumberedLock>(person->store, "l", clock_);
    person->own = NewOwn();
  }

  SeededRandom random_;
  FakeClock clock_;
  std::shared_ptr<MemStore> disk_;
  std::vector<std::unique_ptr<Person>> people_;
  std::string last_holder_;
  int depth_ = 0, taken_ = 0, followed_ = 0;
};

TEST(NumberedLockCrowd, NeverDoTwoBelieve) {
  constexpr int kSeeds = RoundsInOneThread(300);
  int taken = 0, followed = 0;
  for (uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    CrowdRun run(seed);
    run.Run();
    taken += run.taken();
    followed += run.followed();
  }
  EXPECT_GT(taken, 10 * kSeeds);
  EXPECT_GT(followed, 10 * kSeeds);
}

}  // namespace
}  // namespace overcap
