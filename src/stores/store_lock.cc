// SPDX-License-Identifier: Apache-2.0
#include "stores/store_lock.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "sys/random.h"

namespace overcap {
namespace {

int64_t Now() {
  return LockPlace::OwnClock().MonotonicUs();
}

// Those who wait together do not ask together.
void SleepAbout(int64_t us) {
  const int64_t spread = std::max<int64_t>(us / 4, 1);
  const auto more = static_cast<int64_t>(KernelRandom().Next() % static_cast<uint64_t>(spread));
  std::this_thread::sleep_for(std::chrono::microseconds(us - spread + more));
}

// Why it is not ours yet.
struct Obstacle {
  std::string text;  // "held by ..."
  Error error;
};

Obstacle HeldBy(const Store& store, const std::string& name, const LockRecord& holder) {
  const std::string text =
      holder.held ? StrCat("held by ", DescribeHolder(holder)) : "taken by somebody who was faster";
  return {text,
          {ErrorCode::kConflict,
           StrCat("lock ", Quoted(name, 200), " in store ", Quoted(store.Location(), 300), " is ", text),
           "give it more time: --wait 1h"}};
}

Obstacle TooSlow(const Store& store, int64_t lease_us) {
  const std::string text = StrCat("answers too slowly to keep a lock of ", lease_us / 1'000'000, " s");
  return {StrCat("the store ", text),
          {ErrorCode::kUnavailable, StrCat("store ", Quoted(store.Location(), 300), " ", text), ""}};
}

}  // namespace

int64_t LockPatienceUs(int64_t lease_us) {
  return lease_us / 6;
}

struct StoreLock::State {
  std::shared_ptr<Store> store;
  std::unique_ptr<LockPlace> place;  // the thread's until it has ended
  int64_t lease_us = 0;

  mutable std::mutex mutex;  // guards all below
  std::condition_variable changed;
  bool stop = false, ended = false;
  mutable bool lost = false;
  bool taken = false;
  int64_t sent_us = 0;
  std::string trouble;  // why it could not be renewed last

  int64_t HeldUntil() const { return sent_us + lease_us * 2 / 3; }  // with mutex
  bool Held() const {                                               // with mutex
    lost = lost || Now() >= HeldUntil();
    return !lost;
  }
};

Result<std::unique_ptr<StoreLock>> StoreLock::Acquire(std::shared_ptr<Store> store, const std::string& name,
                                                      const LockOptions& options) {
  auto state = std::make_shared<State>();
  OC_TRY(place, store->LockAt(name));
  state->place = std::move(place);
  state->store = std::move(store);
  state->lease_us = options.lease_us;
  LockRecord own = OwnLockRecord(options.lease_us, PosixClock().WallUs());
  const int64_t end = Now() + options.wait_us;
  Obstacle obstacle;
  for (bool first = true;; first = false) {
    auto take = state->place->Take(own);
    const bool passing = !take && take.error().code == ErrorCode::kUnavailable && !first;
    if (!take && (!passing || Now() >= end)) return Fail(take.error());
    state->sent_us = state->place->SentUs();
    if (take && take->taken && state->Held()) break;
    if (take && take->taken) {  // it took too long to be told: as somebody else from the beginning
      (void)state->place->Release();
      obstacle = TooSlow(*state->store, options.lease_us);
      OC_TRY(anew, state->store->LockAt(name));
      state->place = std::move(anew);
      state->lost = false;
      own = OwnLockRecord(options.lease_us, PosixClock().WallUs());
    } else if (take) {
      obstacle = HeldBy(*state->store, name, take->holder);
    }
    const bool goes_on = !options.waiting || options.waiting(obstacle.text);
    if (Now() >= end || !goes_on) return Fail(obstacle.error);
    SleepAbout(std::min(options.poll_us, std::max<int64_t>(end - Now(), 1000)));
  }
  return std::unique_ptr<StoreLock>(new StoreLock(state, std::thread([state] { KeepRenewing(state); })));
}

// Renews until it is lost or told to stop; calls of the store are made without the mutex.
void StoreLock::KeepRenewing(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  int64_t pause_us = state->lease_us / 6;
  while (!state->stop && !state->lost) {
    state->changed.wait_for(lock, std::chrono::microseconds(pause_us), [&] { return state->stop; });
    if (state->stop) break;
    lock.unlock();
    const auto renewed = state->place->Renew();
    lock.lock();
    if (!state->Held()) {
      // Too late, whatever it says; the next who wants it need not wait.
      lock.unlock();
      if (renewed) (void)state->place->Release();
      lock.lock();
    }
    if (renewed && !state->lost) state->sent_us = state->place->SentUs();
    if (!renewed) state->trouble = renewed.error().message;
    if (!renewed && renewed.error().code == ErrorCode::kConflict) state->lost = state->taken = true;
    pause_us = state->lease_us / (renewed ? 6 : 24);
  }
  state->ended = true;
  state->changed.notify_all();
}

bool StoreLock::Held() const {
  const std::lock_guard lock(state_->mutex);
  return state_->Held();
}

int64_t StoreLock::HeldUntilUs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->HeldUntil();
}

int64_t StoreLock::MustEndUs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sent_us + state_->lease_us * 5 / 6;
}

bool StoreLock::Taken() const {
  const std::lock_guard lock(state_->mutex);
  return state_->taken;
}

std::string StoreLock::WhyLost() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->Held()) return "";
  return state_->trouble.empty() ? "it was not renewed in time" : state_->trouble;
}

int64_t StoreLock::turn() const {
  return state_->place->Turn();
}

bool StoreLock::EndThread(int64_t patience_us) {
  if (!thread_.joinable()) return true;
  bool ended;
  {
    std::unique_lock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
    ended = state_->changed.wait_for(lock, std::chrono::microseconds(patience_us),
                                     [this] { return state_->ended; });
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

Result<void> StoreLock::Release() {
  const bool ended = EndThread(state_->lease_us);
  const bool held = Held();
  {
    const std::lock_guard lock(state_->mutex);
    state_->lost = true;
  }
  if (!held || !ended)
    return Fail(ErrorCode::kConflict, StrCat("the lock was lost before it was let go of: ", WhyLost()));
  return state_->place->Release();
}

StoreLock::~StoreLock() {
  if (Held()) {
    (void)Release();
  } else {
    (void)EndThread(LockPatienceUs(state_->lease_us));
  }
}

}  // namespace overcap
